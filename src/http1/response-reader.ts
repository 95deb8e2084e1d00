import { BodyPieces, type BodyReader, ChunkedBody, CountedBody } from './body.ts'
import { CR, LF } from './bytes.ts'
import type { ChunkRules } from './chunks.ts'
import { HeadReader } from './head-reader.ts'
import { type Http1ResponseHead, meaningOfResponse } from './response-head.ts'
import { mayBeTolerantHead, readTolerantly, TolerantHeadEnd } from './tolerant-head.ts'

/**
 * By which rules responses are read. `strict`: as RFC 9112 writes them. `tolerant`: as old firmware sends them. `auto`: strictly,
 * and what the strict rules refuse is read again, from the same bytes, by the tolerant ones.
 */
export type ResponseRules = 'strict' | 'tolerant' | 'auto'

/** Why no more of a response can be read. */
export type ResponseFault = 'malformed' | 'too-large' | 'incomplete'

export interface ResponseEvents {
  /** An interim response (RFC 9110 §15.2) other than 100 and 101. */
  onInterim(head: Http1ResponseHead): void
  onHead(head: Http1ResponseHead): void
  onBody(chunk: Buffer): void
  /** Called once, with the last piece of the body if that came with its end. `clean`: nothing stood behind it. */
  onWhole(last: Buffer | undefined, clean: boolean): void
  onFault(fault: ResponseFault): void
  /** The strict rules would have refused what has just been read. */
  onSloppy(): void
}

/** Heads, and the trailers of a body, are read up to this size (bytes). */
const LARGEST_RESPONSE_HEAD: number = 64 * 1024

/** Interim responses to one request; a device that sends more is not making progress. */
const MOST_INTERIM = 16

const LENIENT = { longestExtension: 4096, mostExcess: Number.POSITIVE_INFINITY }
const CHUNKS: Readonly<Record<ResponseRules, ChunkRules>> = {
  strict: { ...LENIENT, longestTrailers: LARGEST_RESPONSE_HEAD, tolerant: false },
  auto: { ...LENIENT, longestTrailers: LARGEST_RESPONSE_HEAD, tolerant: true },
  tolerant: { ...LENIENT, longestTrailers: undefined, tolerant: true },
}

/** The bytes that come over a connection to a server, as responses: one after each `expect`, until `close`. */
export class ResponseReader {
  readonly #events: ResponseEvents
  readonly #reader = new HeadReader('responses')
  readonly #tolerantEnd = new TolerantHeadEnd()
  readonly #pieces = new BodyPieces()
  readonly #addPiece = (start: number, end: number): void => this.#pieces.add(start, end)
  #rules: ResponseRules = 'strict'
  #method = ''
  /** What has come of a head in earlier packets. */
  #pending: Buffer | undefined
  /** The strict rules have refused what has come of this head. */
  #refused = false
  #body: BodyReader | undefined
  #wanted = false
  #interim = 0
  /** A byte has come since the last `expect`. */
  heard = false
  /** The head of the response, since it has come. */
  head: Http1ResponseHead | undefined

  constructor(events: ResponseEvents) {
    this.#events = events
  }

  /** The next bytes begin a response to a request with this method. */
  expect(method: string, rules: ResponseRules): void {
    this.#method = method
    this.#rules = rules
    this.#reader.reset()
    this.#tolerantEnd.reset()
    this.#refused = false
    this.#pending = undefined
    this.#body = undefined
    this.#wanted = true
    this.#interim = 0
    this.heard = false
    this.head = undefined
  }

  /** The server reads another request from this connection, as far as its response tells. */
  get persists(): boolean {
    return this.head?.persists === true && this.#body?.sloppy !== true
  }

  /** Returns whether a large body passes. If the bytes are its `own`, those that are full of a body are kept, not copied. */
  receive(bytes: Buffer, length: number, own: boolean): boolean {
    this.heard = true
    let at = 0
    do
      at =
        this.head === undefined ? this.#readHead(bytes, at, length) : this.#readBody(bytes, at, length, own)
    while (at < length && this.#wanted)
    return this.#pieces.large
  }

  /** The server sends no more; `inOrder` unless it reset the connection. A reset ends no response that has no length. */
  finish(inOrder: boolean): void {
    if (this.head === undefined) return
    if (inOrder && this.head.framing === 'end') this.#end(undefined, true)
    else this.#fail('incomplete')
  }

  /** Nothing more is read. */
  close(): void {
    this.#wanted = false
  }

  /** Gives the position behind the head, or behind what has come of it. */
  #readHead(bytes: Buffer, at: number, end: number): number {
    const before = this.#pending
    const text = before === undefined ? bytes : Buffer.concat([before, bytes.subarray(at, end)])
    const start = before === undefined ? at : 0
    const stop = before === undefined ? end : text.length
    const behind = this.#parseHead(text, start, stop)
    if (behind === undefined) {
      if (stop - start > LARGEST_RESPONSE_HEAD) this.#fail('too-large')
      else if (this.#wanted) this.#pending = Buffer.from(text.subarray(start, stop))
      return end
    }
    this.#pending = undefined
    const next = end - (stop - behind)
    if (this.head?.framing === 0) this.#end(undefined, onlyLineEnds(bytes, next, end))
    return next
  }

  /** Gives the position behind a head that has been read; undefined where it is not whole, or none. */
  #parseHead(text: Buffer, start: number, stop: number): number | undefined {
    if (this.#refused || this.#rules === 'tolerant') return this.#parseTolerantly(text, start, stop)
    const progress = this.#reader.read(text, start, stop)
    if (progress === 'more') return undefined
    const { length } = this.#reader
    const head =
      progress === 'done' ? meaningOfResponse(this.#reader.take(text, start), this.#method) : undefined
    if (head !== undefined) {
      this.#take(head, length)
      return start + length
    }
    if (this.#rules === 'strict') {
      this.#fail('malformed')
      return undefined
    }
    this.#refused = true
    return this.#parseTolerantly(text, start, stop)
  }

  #parseTolerantly(text: Buffer, start: number, stop: number): number | undefined {
    const end = this.#tolerantEnd.find(text, start, stop)
    const from = start + this.#tolerantEnd.from
    if (end === undefined) {
      if (!mayBeTolerantHead(text, from, stop)) this.#fail('malformed')
      return undefined
    }
    this.#tolerantEnd.reset()
    const head = readTolerantly(text.toString('latin1', from, end.head), this.#method)
    if (typeof head === 'string') {
      this.#fail(head)
      return undefined
    }
    if (this.#rules === 'auto') this.#events.onSloppy()
    this.#rules = 'tolerant'
    this.#take(head, end.head - from)
    return end.body
  }

  /** @param size bytes */
  #take(head: Http1ResponseHead, size: number): void {
    if (size > LARGEST_RESPONSE_HEAD) this.#fail('too-large')
    else if (head.status < 200) this.#inform(head)
    else {
      this.head = head
      this.#body = this.#bodyOf(head)
      this.#events.onHead(head)
    }
  }

  #bodyOf({ framing }: Http1ResponseHead): BodyReader | undefined {
    if (framing === 0) return undefined
    if (framing === 'chunked') return new ChunkedBody(CHUNKS[this.#rules])
    return new CountedBody(framing === 'end' ? Number.POSITIVE_INFINITY : framing)
  }

  #inform(head: Http1ResponseHead): void {
    this.#interim += 1
    // Nobody asked the device to speak another protocol.
    if (head.status === 101 || this.#interim > MOST_INTERIM) this.#fail('malformed')
    // `100 Continue` answers an expectation that is never passed on; a client must bear it (RFC 9110 §15.2).
    else if (head.status !== 100) this.#events.onInterim(head)
  }

  #readBody(bytes: Buffer, at: number, end: number, own: boolean): number {
    const body = this.#body
    if (body === undefined) return end
    this.#pieces.clear()
    const behind = body.read(bytes, at, end, this.#addPiece)
    const data = this.#pieces.take(bytes, own)
    if (body.sloppy && this.#rules === 'auto') {
      this.#rules = 'tolerant'
      this.#events.onSloppy()
    }
    if (behind >= 0 && body.done) {
      this.#end(data, onlyLineEnds(bytes, behind, end))
      return behind
    }
    // Only data ends a pause: framing without any could go on for ever.
    if (data !== undefined) this.#events.onBody(data)
    if (behind >= 0) return behind
    this.#fail(body.tooLong ? 'too-large' : 'malformed')
    return end
  }

  #fail(fault: ResponseFault): void {
    if (!this.#wanted) return
    this.#wanted = false
    this.#events.onFault(fault)
  }

  #end(last: Buffer | undefined, clean: boolean): void {
    if (!this.#wanted) return
    this.#wanted = false
    this.#events.onWhole(last, clean)
  }
}

function isLineEnd(byte: number | undefined): boolean {
  return byte === CR || byte === LF
}

/** Line ends between two messages mean nothing (RFC 9112 §2.2), and some firmware is generous with them. */
export function onlyLineEnds(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if (!isLineEnd(bytes[at])) return false
  return true
}
