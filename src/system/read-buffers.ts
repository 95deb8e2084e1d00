/** What one read may take in (bytes): a wake-up of the peer for each 64 KiB costs more than to move the bytes. */
export const LARGE_BUFFER: number = 512 * 1024

/** All large buffers together take 4 MiB at most. A reader that gets none reads in smaller pieces. */
const MOST = 8

interface Slot {
  /** Weak, so that a full collection frees a buffer that is not in use, also one that was lent and never given back. */
  readonly memory: WeakRef<ArrayBuffer>
  lent: boolean
}

const slots: Slot[] = []

/** A buffer of `LARGE_BUFFER` bytes, until `giveBack`; undefined if all are lent. */
export function lendBuffer(): Buffer | undefined {
  for (let i = 0; i < MOST; i += 1) {
    const slot = slots[i]
    const memory = slot?.memory.deref()
    if (slot === undefined || memory === undefined) {
      const fresh = new ArrayBuffer(LARGE_BUFFER)
      slots[i] = { memory: new WeakRef(fresh), lent: true }
      return Buffer.from(fresh)
    }
    if (!slot.lent) {
      slot.lent = true
      return Buffer.from(memory)
    }
  }
  return undefined
}

/**
 * Takes a lent buffer back, or a piece that begins it. Returns false for other memory. Call it once for each loan, when the bytes are
 * not read again: the next loan overwrites them.
 */
export function giveBack({ buffer, byteOffset }: Buffer): boolean {
  if (buffer.byteLength !== LARGE_BUFFER || byteOffset !== 0) return false
  const slot = slots.find(({ memory }) => memory.deref() === buffer)
  if (slot !== undefined) slot.lent = false
  return slot !== undefined
}
