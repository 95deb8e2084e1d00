import { LARGE_PIECE } from '../system/write-soon.ts'
import { type ChunkRules, Chunks } from './chunks.ts'
import { HeadReader } from './head-reader.ts'

/** Called with the start and the end of each run of data in the bytes that are being read. */
export type OnData = (start: number, end: number) => void

/**
 * Finds the data of a chunked body and its end in the bytes of a connection (RFC 9112 §7.1). Its trailers are dropped (RFC 9110 §6.5.1):
 * merged into the header, some would change the message.
 */
export class ChunkedBody {
  readonly #rules: ChunkRules
  readonly #chunks: Chunks
  readonly #trailers = new HeadReader('trailers')
  #trailersDone: boolean
  /** The trailer section exceeds its limit. */
  tooLong = false

  constructor(rules: ChunkRules) {
    this.#rules = rules
    this.#chunks = new Chunks(rules)
    this.#trailersDone = rules.longestTrailers === undefined
  }

  get done(): boolean {
    return this.#chunks.done && (this.#trailersDone || this.#chunks.sloppy)
  }

  /** Only the tolerant rules accept this body. The start of the next message is therefore uncertain. */
  get sloppy(): boolean {
    return this.#chunks.sloppy
  }

  /**
   * Reads the next bytes and calls `onData` for each run of data. Returns the position after the last byte of the body, or
   * -1 if the bytes are not a valid body.
   */
  read(bytes: Buffer, start: number, end: number, onData: OnData): number {
    const at = this.#chunks.done ? start : this.#chunks.read(bytes, start, end, onData)
    if (at < 0 || !this.#chunks.done || this.done) return at
    const after = this.#readTrailers(bytes, at, end)
    if (after >= 0 || this.tooLong || !this.#rules.tolerant) return after
    // The data is complete. After an invalid trailer section the start of the next message is uncertain.
    this.#chunks.sloppy = true
    return at
  }

  /** Reads trailers, which are fields and an empty line as in a head (RFC 9112 §7.1.2). */
  #readTrailers(bytes: Buffer, at: number, end: number): number {
    const start = at - this.#trailers.length
    const most = Math.min(end, start + (this.#rules.longestTrailers ?? 0))
    const progress = this.#trailers.read(bytes, start, most)
    this.#trailersDone = progress === 'done'
    this.tooLong = progress === 'more' && most < end
    return progress === 'fault' || this.tooLong ? -1 : start + this.#trailers.length
  }
}

/** The runs of data in the bytes that are being read. */
export class BodyPieces {
  readonly #ends: number[] = []
  #count = 0
  #size = 0
  /** The bytes taken last were a single large piece, so a large body is in transfer and more such pieces will follow. */
  large = false

  readonly add: OnData = (start, end) => {
    this.#ends[this.#count] = start
    this.#ends[this.#count + 1] = end
    this.#count += 2
    this.#size += end - start
  }

  /**
   * Joins the pieces into a copy. If the reader owns the bytes (`own`) and one large piece fills them, returns the bytes
   * themselves: no other data keeps their memory alive.
   */
  take(bytes: Buffer, own: boolean): Buffer | undefined {
    const size = this.#size
    const count = this.#count
    this.#size = 0
    this.#count = 0
    this.large = count === 2 && size >= LARGE_PIECE
    if (size === 0) return undefined
    if (own && this.large && size === bytes.length) return bytes
    const body = size < LARGE_PIECE ? Buffer.allocUnsafe(size) : Buffer.allocUnsafeSlow(size)
    let at = 0
    for (let i = 0; i < count; i += 2) at += bytes.copy(body, at, this.#ends[i], this.#ends[i + 1])
    return body
  }
}
