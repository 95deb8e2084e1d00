import type { ForwardEnd } from '../http/exchange.ts'
import { type Refusal, StalledBodyError } from '../http/refusal.ts'
import type { Clock } from '../system/clock.ts'
import type { ForwardExchange } from './forward-exchange.ts'
import { idleIn, watchPace } from './pace.ts'
import { bodyRefusal, OVERLOADED, type QueuePlaces, waitForPlace } from './place.ts'

export type BufferedBody = ReturnType<typeof bufferBody>

/** The default bound (bytes). It is enough for the calls of an API, not for uploads. */
const DEFAULT_BOUND = 64 * 1024

/**
 * A request body that is buffered up to a bound, to learn its length before it is sent, or to send it again.
 *
 * @param source its iterator is made when the first byte is needed
 * @param most the bound in bytes; the buffer of a longer body is dropped
 * @param mayHold asked before more bytes are held; if it returns false, reading fails with `OverMemoryError`
 * @param onEmptied called when `open` has yielded the part of a longer body that `readAll` had read: its memory is free
 */
export function bufferBody(
  source: AsyncIterable<Buffer>,
  most: number = DEFAULT_BOUND,
  onEmptied?: () => void,
  mayHold: (bytes: number) => boolean = () => true,
) {
  let iterator: AsyncIterator<Buffer> | undefined
  let buffer: Blocks | undefined = new Blocks()
  let whole = false
  /** The part of a body longer than the bound that `readAll` has read. */
  let begun: Buffer[] = []

  async function next(): Promise<Buffer | undefined> {
    iterator ??= source[Symbol.asyncIterator]()
    const result = await iterator.next()
    if (result.done === true) {
      whole = true
      return undefined
    }
    if (buffer !== undefined && !mayHold(result.value.length)) throw new OverMemoryError()
    if (buffer !== undefined && buffer.size + result.value.length > most) buffer = undefined
    buffer?.add(result.value)
    return result.value
  }

  return {
    /** The bytes read so far, then the rest. Only one reader at a time. */
    async *open(): AsyncGenerator<Buffer, void, void> {
      for (const block of buffer?.filled() ?? []) yield block
      for (let block = begun.shift(); block !== undefined; block = begun.shift()) yield block
      if (!whole && buffer === undefined) onEmptied?.()
      for (let piece = await next(); piece !== undefined; piece = await next()) yield piece
    },
    /**
     * Reads the whole body and returns its length (bytes). Returns undefined as soon as it is longer than the bound: `open` then
     * yields all of it, once.
     */
    async readAll(): Promise<number | undefined> {
      while (!whole && buffer !== undefined) {
        const held = buffer
        const piece = await next()
        if (buffer === undefined && piece !== undefined) begun = [...held.filled(), piece]
      }
      return buffer?.size
    },
    get size(): number {
      return buffer?.size ?? 0
    },
    /** The whole body was read and is still in the buffer. */
    get repeatable(): boolean {
      return whole && buffer !== undefined
    },
    close(): void {
      iterator?.return?.().catch(() => {})
    },
  }
}

/** The client holds too much to hold more of its upload (C26). */
class OverMemoryError extends Error {
  override readonly name = 'OverMemoryError'
}

/** A block has at most this many bytes, or the size of a larger piece. */
const LARGEST_BLOCK = 64 * 1024

/**
 * The bytes of a body, to be read several times. Copies the pieces into blocks: a piece may be one byte of a large read buffer, and
 * would keep all of that buffer in memory. A new block is at most as large as all before it (or as one piece), so at most half of the
 * memory is unused.
 */
export class Blocks {
  readonly #blocks: Buffer[] = []
  /** Free bytes in the last block. */
  #free = 0
  /** The bytes that were added. */
  size = 0

  add(piece: Buffer): void {
    this.size += piece.length
    for (let at = 0; at < piece.length; ) {
      if (this.#free === 0) this.#extend(piece.length - at)
      const last = this.#blocks.at(-1)
      const taken = last === undefined ? 0 : piece.copy(last, last.length - this.#free, at)
      this.#free -= taken
      at += taken
    }
  }

  filled(): readonly Buffer[] {
    const end = this.#blocks.length - 1
    return this.#blocks.map((block, i) => (i < end ? block : block.subarray(0, block.length - this.#free)))
  }

  /** The bytes behind `position`, as far as one block holds them; undefined at the end. */
  from(position: number): Buffer | undefined {
    let start = 0
    for (const block of this.filled()) {
      if (position < start + block.length) return block.subarray(position - start)
      start += block.length
    }
    return undefined
  }

  /** Adds a block that is one byte shorter than its memory. So `writeSpent` does not free it: the bytes may be sent again. */
  #extend(needed: number): void {
    this.#free = Math.max(needed, Math.min(this.size, LARGEST_BLOCK))
    this.#blocks.push(Buffer.allocUnsafeSlow(this.#free + 1).subarray(0, this.#free))
  }
}

/** `queue` bounds how many uploads are buffered at once, and so their memory: `most` (bytes) for each. */
export interface UploadBuffering extends QueuePlaces {
  readonly most: number
  /** Called for a longer upload, which then streams in chunks. Undefined: a longer upload is refused. */
  readonly onLonger: (() => void) | undefined
}

interface BufferedUpload {
  readonly body: BufferedBody
  readonly framing: number | 'chunked'
}

/**
 * Buffers an upload of unknown length, then sends it with a `Content-Length`. Old firmware reads only that field: it takes a chunked
 * request for one without a body, or the chunk sizes for part of the body. The upload takes a place at the device only when it is complete
 * or exceeds the bound. So a slow client holds no place, and no byte of an upload that is refused here reaches the device.
 *
 * @param source the body
 * @param send sends the body, in chunks if it is longer than the bound
 */
export async function sendBuffered(
  exchange: ForwardExchange,
  source: AsyncIterable<Buffer>,
  buffering: UploadBuffering,
  clock: Clock,
  send: (substitutes: BufferedUpload, end: ForwardEnd) => void,
): Promise<Refusal | undefined> {
  const { most, onLonger, queue, pace } = buffering
  const leave = queue.tryEnter() ?? (await waitForPlace(buffering, exchange, clock))
  if (typeof leave !== 'function') return leave
  const { memory } = exchange
  let held = 0
  const mayHold = (bytes: number): boolean => {
    if (memory?.mayHold(bytes) === false) return false
    memory?.hold(bytes)
    held += bytes
    return true
  }
  const body = bufferBody(source, most, leave, mayHold)
  const tooSlow = Promise.withResolvers<never>()
  const watch = watchPace(
    pace,
    idleIn(exchange.waited, exchange),
    () => body.size,
    () => tooSlow.reject(new StalledBodyError()),
  )
  try {
    const length = await Promise.race([body.readAll(), tooSlow.promise])
    watch.cancel()
    if (length === undefined && onLonger === undefined) return { kind: 'content-too-large' }
    if (length === undefined) onLonger?.()
    return await new Promise((resolve, reject) => {
      const end: ForwardEnd = {
        ended: (_exchange, refusal) => resolve(refusal),
        onBug: (_exchange, bug) => reject(bug),
      }
      send({ body, framing: length ?? 'chunked' }, end)
    })
  } catch (error) {
    return error instanceof OverMemoryError ? OVERLOADED : bodyRefusal(error)
  } finally {
    watch.cancel()
    body.close()
    memory?.hold(-held)
    leave()
  }
}
