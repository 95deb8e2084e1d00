import { CR } from './http1-bytes.ts'
import { Chunks } from './http1-chunks.ts'
import { RequestLine } from './http1-request-line.ts'
import { Trailers } from './http1-trailers.ts'

/** How the body of a message is delimited: by a count of bytes, perhaps 0, or by chunks (RFC 9112 §6). */
export type BodyFraming = number | 'chunked'

/**
 * Why reading stopped: the bytes were used up, a head ended, a message ended, or they hold something that HTTP does not
 * allow.
 */
export type Stop = 'more' | 'head' | 'message' | 'fault'

const BLANK_LINE = Buffer.from('\r\n\r\n')
/** Behind a line break, half of a blank line has been seen. */
const LINE_BREAK = 2

/**
 * Finds where the messages of one connection begin and end, and is strict where Node's parser is lenient: about request
 * lines, chunks and trailers. What stands in the fields is left to that parser.
 */
export class Http1Framing {
  /** Up to where the bytes have been read. */
  position = 0
  /** Up to where they matter: what has been read behind it is a trailer section. */
  useful = 0
  readonly #line = new RequestLine()
  readonly #chunks = new Chunks()
  readonly #trailers = new Trailers()
  #part: 'line' | 'fields' | 'body' | 'chunks' | 'trailers' = 'line'
  /** Bytes of the blank line that have been seen. */
  #blank = 0
  /** Bytes of the body that are still to come. */
  #left = 0

  /** Between two messages, not a byte of the next one read. */
  get idle(): boolean {
    return this.#part === 'line' && this.#line.fresh
  }

  /** Reads on, to `position`. Behind a fault nothing more can be read. */
  read(bytes: Buffer): Stop {
    this.position = 0
    this.useful = 0
    let stop: Stop = 'more'
    while (stop === 'more' && this.position < bytes.length) {
      const trails = this.#part === 'trailers'
      stop = this.#step(bytes)
      if (!trails) this.useful = this.position
    }
    return stop
  }

  /** Says, after `head`, how the body is framed. True if there is none, so that the message has ended. */
  body(framing: BodyFraming): boolean {
    if (framing === 0) this.#begin()
    else if (framing === 'chunked') {
      this.#chunks.again()
      this.#trailers.again()
      this.#part = 'chunks'
    } else {
      this.#part = 'body'
      this.#left = framing
    }
    return framing === 0
  }

  #begin(): void {
    this.#part = 'line'
    this.#line.again()
  }

  #step(bytes: Buffer): Stop {
    switch (this.#part) {
      case 'line':
        if (!this.#readBy(this.#line, bytes)) return 'fault'
        if (this.#line.done) {
          this.#part = 'fields'
          this.#blank = LINE_BREAK
        }
        return 'more'
      case 'fields':
        return this.#readFields(bytes) ? 'head' : 'more'
      case 'chunks':
        if (!this.#readBy(this.#chunks, bytes)) return 'fault'
        if (this.#chunks.done) this.#part = 'trailers'
        return 'more'
      case 'trailers':
        if (!this.#readBy(this.#trailers, bytes)) return 'fault'
        return this.#trailers.done ? this.#end() : 'more'
      case 'body': {
        const taken = Math.min(this.#left, bytes.length - this.position)
        this.position += taken
        this.#left -= taken
        return this.#left === 0 ? this.#end() : 'more'
      }
    }
  }

  #end(): Stop {
    this.#begin()
    return 'message'
  }

  #readBy(reader: RequestLine | Chunks | Trailers, bytes: Buffer): boolean {
    this.position = reader.read(bytes, this.position)
    return this.position >= 0
  }

  /** Reads to the end of the blank line; true when it is there. */
  #readFields(bytes: Buffer): boolean {
    let at = this.position
    let blank = this.#blank
    while (blank > 0 && blank < BLANK_LINE.length && at < bytes.length) blank = oneByte(blank, bytes[at++])
    if (blank === 0) {
      const found = bytes.indexOf(BLANK_LINE, at)
      if (found >= 0) {
        blank = BLANK_LINE.length
        at = found + blank
      } else {
        for (const byte of bytes.subarray(Math.max(at, bytes.length - 3))) blank = oneByte(blank, byte)
        at = bytes.length
      }
    }
    this.position = at
    this.#blank = blank
    return blank === BLANK_LINE.length
  }
}

/** How many bytes of a blank line have been seen, one byte later. */
function oneByte(seen: number, byte: number | undefined): number {
  if (byte === BLANK_LINE[seen]) return seen + 1
  return byte === CR ? 1 : 0
}
