/** A request body that is kept up to a bound, so that its length is known before it is sent, or that it can be sent again. */
export interface KeptBody {
  /** What was read so far, then the rest. One at a time. */
  open(): AsyncIterable<Buffer>
  /** Reads all of it, and gives its length (bytes); undefined as soon as that is more than is kept. */
  collect(): Promise<number | undefined>
  /** All of it was read, and is still there. */
  readonly repeatable: boolean
  /** Ends the reading of the source. */
  close(): void
}

/** The bound (bytes) unless told: for the calls of an API, not for uploads. */
const LARGEST_KEPT = 64 * 1024

/** @param most the bound in bytes; nothing is kept of a longer body */
export function keepBody(source: AsyncIterable<Buffer>, most: number = LARGEST_KEPT): KeptBody {
  const iterator = source[Symbol.asyncIterator]()
  let kept: Blocks | undefined = new Blocks()
  let whole = false

  async function next(): Promise<Buffer | undefined> {
    const result = await iterator.next()
    if (result.done === true) {
      whole = true
      return undefined
    }
    if (kept !== undefined && kept.size + result.value.length > most) kept = undefined
    kept?.add(result.value)
    return result.value
  }

  return {
    async *open() {
      // Copies, because the memory of what is sent is freed with it (`spent-bytes.ts`).
      for (const block of kept?.filled() ?? []) yield Buffer.from(block)
      for (let piece = await next(); piece !== undefined; piece = await next()) yield piece
    },
    async collect() {
      while (!whole && kept !== undefined) await next()
      return kept?.size
    },
    get repeatable() {
      return whole && kept !== undefined
    },
    close() {
      iterator.return?.().catch(() => {})
    },
  }
}

/** Blocks are no larger than this (bytes) unless a piece is. */
const LARGEST_BLOCK = 64 * 1024

/**
 * Copies pieces into blocks: a piece may be one byte of a large read buffer, which would stay in memory with it. A block is
 * no larger than what is held already, or than one piece, so that little memory is unused.
 */
class Blocks {
  readonly #blocks: Buffer[] = []
  /** Bytes that are free in the last block. */
  #room = 0
  size = 0

  add(piece: Buffer): void {
    this.size += piece.length
    for (let at = 0; at < piece.length; ) {
      if (this.#room === 0) this.#extend(piece.length - at)
      const last = this.#blocks.at(-1)
      const taken = last === undefined ? 0 : piece.copy(last, last.length - this.#room, at)
      this.#room -= taken
      at += taken
    }
  }

  filled(): readonly Buffer[] {
    const end = this.#blocks.length - 1
    return this.#blocks.map((block, i) => (i < end ? block : block.subarray(0, block.length - this.#room)))
  }

  #extend(needed: number): void {
    this.#room = Math.max(needed, Math.min(this.size, LARGEST_BLOCK))
    this.#blocks.push(Buffer.allocUnsafeSlow(this.#room))
  }
}
