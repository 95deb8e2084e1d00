import { LARGE_PIECE } from '../system/write-soon.ts'
import { COLON, CR, LF, TEXT, TOKEN } from './bytes.ts'
import { type ChunkRules, Chunks } from './chunks.ts'

/** Called with the start and the end of each run of data in the bytes that are being read. */
export type OnData = (start: number, end: number) => void

/**
 * Finds the data of a chunked body and its end in the bytes of a connection (RFC 9112 §7.1). Its trailers are dropped (RFC 9110 §6.5.1):
 * merged into the header, some would change the message.
 */
export class ChunkedBody {
  readonly #chunks: Chunks
  readonly #trailers: Trailers | undefined
  readonly #tolerant: boolean

  constructor(rules: ChunkRules) {
    this.#chunks = new Chunks(rules)
    this.#trailers = rules.longestTrailers === undefined ? undefined : new Trailers(rules.longestTrailers)
    this.#tolerant = rules.tolerant
  }

  get done(): boolean {
    return this.#chunks.done && (this.#trailers === undefined || this.#trailers.done || this.#chunks.sloppy)
  }

  /** Only the tolerant rules accept this body. The start of the next message is therefore uncertain. */
  get sloppy(): boolean {
    return this.#chunks.sloppy
  }

  /** The trailer section exceeds its limit. */
  get tooLong(): boolean {
    return this.#trailers?.tooLong === true
  }

  /**
   * Reads the next bytes and calls `onData` for each run of data. Returns the position after the last byte of the body, or
   * -1 if the bytes are not a valid body.
   */
  read(bytes: Buffer, start: number, end: number, onData: OnData): number {
    const at = this.#chunks.done ? start : this.#chunks.read(bytes, start, end, onData)
    if (at < 0 || !this.#chunks.done || this.done) return at
    const after = this.#trailers?.read(bytes, at, end) ?? at
    if (after >= 0 || this.tooLong || !this.#tolerant) return after
    // The data is complete. After an invalid trailer section the start of the next message is uncertain.
    this.#chunks.sloppy = true
    return at
  }
}

/** Reads a trailer section (RFC 9112 §7.1.2): fields, each ended by CRLF, then an empty line. */
class Trailers {
  readonly #longest: number
  #part: 'start' | 'name' | 'value' | 'line-end' | 'end' | 'done' = 'start'
  #count = 0

  /** @param longest the largest section (bytes) */
  constructor(longest: number) {
    this.#longest = longest
  }

  /** The section is larger than `longest`. */
  get tooLong(): boolean {
    return this.#count > this.#longest
  }

  get done(): boolean {
    return this.#part === 'done'
  }

  /** Reads the next bytes. Returns the position after the last byte of the section, or -1 if it is malformed. */
  read(bytes: Buffer, start: number, end: number): number {
    let at = start
    while (at < end && this.#part !== 'done') if (!this.#accepts(bytes[at++] ?? 0)) return -1
    return at
  }

  #accepts(byte: number): boolean {
    this.#count += 1
    switch (this.#part) {
      case 'start':
        this.#part = byte === CR ? 'end' : 'name'
        return byte === CR || TOKEN[byte] === 1
      case 'name':
        if (byte === COLON) this.#part = 'value'
        return (byte === COLON || TOKEN[byte] === 1) && !this.tooLong
      case 'value':
        if (byte === CR) this.#part = 'line-end'
        return byte === CR || (TEXT[byte] === 1 && !this.tooLong)
      case 'line-end':
        this.#part = 'start'
        return byte === LF
      default:
        this.#part = 'done'
        return byte === LF
    }
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
