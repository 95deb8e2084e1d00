import { LARGE_PIECE } from '../system/write-soon.ts'
import { type ChunkRules, Chunks } from './chunks.ts'
import { Trailers } from './trailers.ts'

/** Finds the data of one body and its end in the bytes of a connection (RFC 9112 §6). */
export interface BodyReader {
  /** The body is read to its end. */
  readonly done: boolean
  /** Only the tolerant rules accept this body. The start of the next message is therefore uncertain. */
  readonly sloppy: boolean
  /** The trailer section exceeds its limit. */
  readonly tooLong: boolean
  /**
   * Reads the next bytes and calls `onData` for each run of data. Returns the position after the last byte of the body, or
   * -1 if the bytes are not a valid body.
   */
  read(bytes: Buffer, start: number, end: number, onData: OnData): number
}

/** Called with the start and the end of each run of data in the bytes that are being read. */
export type OnData = (start: number, end: number) => void

/** A body of a known length (bytes). An infinite length is a body that ends with the connection. */
export class CountedBody implements BodyReader {
  #left: number
  readonly sloppy = false
  readonly tooLong = false
  done: boolean

  constructor(length: number) {
    this.#left = length
    this.done = length === 0
  }

  read(_bytes: Buffer, start: number, end: number, onData: OnData): number {
    const taken = Math.min(this.#left, end - start)
    this.#left -= taken
    this.done = this.#left === 0
    if (taken > 0) onData(start, start + taken)
    return start + taken
  }
}

/** A chunked body. Its trailers are dropped (RFC 9110 §6.5.1): merged into the header, some would change the message. */
export class ChunkedBody implements BodyReader {
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

  get sloppy(): boolean {
    return this.#chunks.sloppy
  }

  get tooLong(): boolean {
    return this.#trailers?.tooLong === true
  }

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

/** The positions of a body's pieces in the bytes that are being read. */
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
