import { BodyPieces, ChunkedBody, type ChunkRules, pieceOf, type Taken, takenOf } from './body.ts'
import { type Deviation, headDeviation } from './deviation.ts'
import type { HeadMemory } from './head-memory.ts'
import { HeadReader, onlyLineEnds } from './head-reader.ts'
import { type Http1ResponseHead, interpretResponse, mayRemember } from './response-head.ts'
import { mayBeTolerantHead, readTolerantly, TolerantHeadEnd } from './tolerant-head.ts'

/**
 * The rules for responses. `strict`: RFC 9112. `tolerant`: also the deviations of old firmware. `auto`: strict, until the strict rules
 * refuse a head or a chunk; from there on tolerant.
 */
export type ResponseRules = 'strict' | 'tolerant' | 'auto'

export type ResponseFault = 'malformed' | 'too-large' | 'incomplete'

export interface ResponseEvents {
  /** An interim response (RFC 9110 §15.2) other than 100 and 101. */
  onInterim(head: Http1ResponseHead): void
  onHead(head: Http1ResponseHead): void
  onBody(chunk: Buffer): void
  /** Called once, with the last piece of the body if it arrives together with the end. `clean`: no stray bytes follow the response. */
  onWhole(last: Buffer | undefined, clean: boolean): void
  onFault(fault: ResponseFault): void
  /** The device switched protocols, as the request asked. `rest`: the bytes after the head, which belong to the new protocol. */
  onSwitch?(head: Http1ResponseHead, rest: Buffer): void
  /** Called in `auto` when the tolerant rules accept a response that the strict rules refuse. */
  onMalformed(deviation: Deviation): void
}

/** The largest response head and the largest trailer section (bytes). */
const LARGEST_RESPONSE_HEAD: number = 64 * 1024

/** The most interim responses to one request. Without a bound they could delay the final response forever. */
const MOST_INTERIM = 16

/** The limits on chunk extensions of a device: bounded per chunk, not in sum. */
const EXTENSIONS = { longestExtension: 4096, mostExcess: Number.POSITIVE_INFINITY }
const CHUNKS: Readonly<Record<ResponseRules, ChunkRules>> = {
  strict: { ...EXTENSIONS, longestTrailers: LARGEST_RESPONSE_HEAD, tolerant: false },
  auto: { ...EXTENSIONS, longestTrailers: LARGEST_RESPONSE_HEAD, tolerant: true },
  tolerant: { ...EXTENSIONS, longestTrailers: undefined, tolerant: true },
}

export type KnownHeads = HeadMemory<Http1ResponseHead>

/** Reads the responses on one connection to the device: one after each `expect`, until `close`. */
export class ResponseReader {
  readonly #events: ResponseEvents
  readonly #reader = new HeadReader('responses')
  readonly #known: KnownHeads
  /** Set while the tolerant rules read a head; in `auto`, after the strict rules have refused it. */
  #tolerantEnd: TolerantHeadEnd | undefined
  readonly #pieces = new BodyPieces()
  #rules: ResponseRules = 'strict'
  #method = ''
  #upgrade = false
  /** The part of a head that arrived in earlier packets. */
  #pending: Buffer | undefined
  /** The remaining bytes of a body without chunks; `Infinity` if it ends with the connection. */
  #left = 0
  #chunked: ChunkedBody | undefined
  #taken: Taken = 'small'
  #wanted = false
  #interim = 0
  /** At least one byte has arrived since the last `expect`. */
  heard = false
  /** The head of the final response; undefined until it is complete. */
  head: Http1ResponseHead | undefined

  /** @param known shared by the connections to one device */
  constructor(events: ResponseEvents, known: KnownHeads) {
    this.#events = events
    this.#known = known
  }

  /** No interim response has come yet. */
  get isFirst(): boolean {
    return this.#interim === 0
  }

  /** Starts the response to a request with this method. The previous response is complete. `upgrade`: the response may switch protocols. */
  expect(method: string, rules: ResponseRules, upgrade = false): void {
    this.#method = method
    this.#upgrade = upgrade
    this.#rules = rules
    this.#chunked = undefined
    this.#wanted = true
    this.#interim = 0
    this.heard = false
    this.head = undefined
  }

  /** The device accepts another request on this connection, and the end of the response is certain. */
  get persists(): boolean {
    return this.head?.persists === true && this.#chunked?.deviation === undefined
  }

  /**
   * Reads the first `length` bytes. Returns `kept` if a body piece is a view of `bytes`: a piece of at least `keepable` bytes at the
   * beginning is not copied.
   */
  receive(bytes: Buffer, length: number, keepable: number): Taken {
    this.heard = true
    this.#taken = 'small'
    let at = 0
    do
      if (this.head === undefined) at = this.#readHead(bytes, at, length)
      else if (this.#chunked === undefined) at = this.#readCounted(bytes, at, length, keepable)
      else at = this.#readChunked(this.#chunked, bytes, at, length, keepable)
    while (at < length && this.#wanted)
    return this.#taken
  }

  /** The device has closed the connection: by a FIN if `inOrder`, otherwise by a reset. Only a FIN ends a body without a length. */
  finish(inOrder: boolean): void {
    if (this.head === undefined) return
    if (inOrder && this.head.framing === 'end') this.#end(undefined, true)
    else this.#fail('incomplete')
  }

  close(): void {
    this.#wanted = false
  }

  /** Reads a head. Returns the position after it; after an incomplete or malformed head, `end`. */
  #readHead(bytes: Buffer, at: number, end: number): number {
    const before = this.#pending
    const text = before === undefined ? bytes : Buffer.concat([before, bytes.subarray(at, end)])
    const start = before === undefined ? at : 0
    const stop = before === undefined ? end : text.length
    const after = this.#parseHead(text, start, stop)
    if (after === undefined) {
      if (stop - start > LARGEST_RESPONSE_HEAD) this.#fail('too-large')
      else if (this.#wanted) this.#pending = Buffer.from(text.subarray(start, stop))
      return end
    }
    this.#pending = undefined
    const next = end - (stop - after)
    if (this.head?.status === 101) {
      this.#wanted = false
      this.#events.onSwitch?.(this.head, bytes.subarray(next, end))
    } else if (this.head?.framing === 0) this.#end(undefined, onlyLineEnds(bytes, next, end))
    return next
  }

  /** Returns the position after a complete head; undefined if it is incomplete or malformed. */
  #parseHead(text: Buffer, start: number, stop: number): number | undefined {
    if (this.#tolerantEnd !== undefined || this.#rules === 'tolerant')
      return this.#parseTolerantly(text, start, stop)
    // The same head means another body after HEAD, and a response to POST rarely repeats.
    const mayRepeat = this.#method === 'GET'
    // The memory is asked only at the first byte of a head, because the rest of a begun head may look like a complete one.
    const known = mayRepeat && this.#reader.length === 0 ? this.#known.find(text, start, stop) : undefined
    if (known !== undefined) {
      this.#take(known.head, known.bytes.length)
      return start + known.bytes.length
    }
    const progress = this.#reader.read(text, start, stop)
    if (progress === 'more') return undefined
    const { length } = this.#reader
    const written = progress === 'done' ? this.#reader.takeResponse() : undefined
    const head = written && interpretResponse(written, this.#method)
    if (head !== undefined) {
      if (mayRepeat && mayRemember(head)) this.#known.keep(text, start, length, { ...head, remembered: true })
      this.#take(head, length)
      return start + length
    }
    return this.#rules === 'auto' ? this.#parseTolerantly(text, start, stop) : this.#fail('malformed')
  }

  #parseTolerantly(text: Buffer, start: number, stop: number): number | undefined {
    this.#tolerantEnd ??= new TolerantHeadEnd()
    const end = this.#tolerantEnd.find(text, start, stop)
    const from = start + this.#tolerantEnd.from
    if (end === undefined) return mayBeTolerantHead(text, from, stop) ? undefined : this.#fail('malformed')
    this.#tolerantEnd = undefined
    const head = readTolerantly(text.toString('latin1', from, end.head), this.#method)
    if (head === undefined) return this.#fail('malformed')
    if (this.#rules === 'auto')
      this.#events.onMalformed(headDeviation(text.toString('latin1', from, end.body)))
    this.#rules = 'tolerant'
    this.#take(head, end.head - from)
    return end.body
  }

  #take(head: Http1ResponseHead, size: number): void {
    if (size > LARGEST_RESPONSE_HEAD) this.#fail('too-large')
    else if (head.status === 101 && this.#upgrade) this.head = head
    else if (head.status < 200) this.#takeInterim(head)
    else {
      this.head = head
      if (head.framing === 'chunked') this.#chunked = new ChunkedBody(CHUNKS[this.#rules])
      else this.#left = head.framing === 'end' ? Number.POSITIVE_INFINITY : head.framing
      this.#events.onHead(head)
    }
  }

  #takeInterim(head: Http1ResponseHead): void {
    this.#interim += 1
    if (head.status === 101 || this.#interim > MOST_INTERIM) this.#fail('malformed')
    // `100 Continue` is dropped: the sidecar never forwards `Expect`, so the device does not answer that of the client.
    else if (head.status !== 100) this.#events.onInterim(head)
  }

  #readCounted(bytes: Buffer, at: number, end: number, keepable: number): number {
    const size = Math.min(this.#left, end - at)
    const after = at + size
    this.#left -= size
    this.#taken = takenOf(at, size, keepable)
    const data = pieceOf(bytes, at, after, this.#taken)
    if (this.#left > 0) this.#events.onBody(data)
    else this.#end(data, after === end || onlyLineEnds(bytes, after, end))
    return after
  }

  #readChunked(body: ChunkedBody, bytes: Buffer, at: number, end: number, keepable: number): number {
    const after = body.read(bytes, at, end, this.#pieces.add)
    const data = this.#pieces.take(bytes, keepable)
    this.#taken = this.#pieces.taken
    if (body.deviation !== undefined && this.#rules === 'auto') {
      this.#rules = 'tolerant'
      this.#events.onMalformed(body.deviation)
    }
    if (after >= 0 && body.done) {
      this.#end(data, after === end || onlyLineEnds(bytes, after, end))
      return after
    }
    // Only data restarts the idle deadline: chunk framing without data could keep the connection open forever.
    if (data !== undefined) this.#events.onBody(data)
    if (after >= 0) return after
    this.#fail(body.tooLong ? 'too-large' : 'malformed')
    return end
  }

  #fail(fault: ResponseFault): undefined {
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
