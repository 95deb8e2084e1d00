/** The size of one large read (bytes). With Node's 64 KiB, the wake-up of the peer for each read costs more than the copy of the bytes. */
export const LARGE_BUFFER: number = 512 * 1024

/** The most large buffers: together 4 MiB. A reader that gets none reads in smaller pieces. */
const MOST = 8

interface Slot {
  /** A weak reference, so that a full collection frees an unused buffer, also one that was lent and never given back. */
  readonly memory: WeakRef<ArrayBuffer>
  lent: boolean
}

const slots: Slot[] = []

/** Lends a buffer of `LARGE_BUFFER` bytes until `giveBack`; undefined if all are lent. */
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
 * Takes back a lent buffer, or a piece at its beginning. Returns false for other memory. Call it once per loan, when the bytes are not read
 * any more: the next loan overwrites them.
 */
export function giveBack({ buffer, byteOffset }: Buffer): boolean {
  if (buffer.byteLength !== LARGE_BUFFER || byteOffset !== 0) return false
  const slot = slots.find(({ memory }) => memory.deref() === buffer)
  if (slot !== undefined) slot.lent = false
  return slot !== undefined
}
