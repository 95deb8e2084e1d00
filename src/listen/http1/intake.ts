import type { Socket } from 'node:net'
import type { Refusal } from '../../http/refusal.ts'
import { BodyPieces, ChunkedBody, type ChunkRules } from '../../http1/body.ts'
import { HeadMemory } from '../../http1/head-memory.ts'
import { HeadReader } from '../../http1/head-reader.ts'
import {
  type ConnectionFacts,
  type Http1RequestHead,
  interpretRequest,
  type RequestBodyFraming,
} from '../../http1/request-head.ts'
import { headCost, REQUEST } from '../../memory/costs.ts'
import type { Clock } from '../../system/clock.ts'
import { LARGE_PIECE } from '../../system/write-soon.ts'
import { PIECE, RequestBody } from '../request-body.ts'

interface IntakeRules {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>
  /** Bytes. */
  readonly maxHeaderSize: number
}

export interface IntakeEvents {
  /** Whether the next request may be read: the previous one is served, and the connection stays open. */
  readonly mayBegin: boolean
  /** Whether `bytes` received bytes may be read in this turn of the event loop. If not, `readOn` is called in a later turn. */
  mayRead(bytes: number): boolean
  /** Charges `count` chunks that were read. Returns whether more may be read in this turn, as `mayRead` does. */
  mayTakeMore(count: number): boolean
  /** A head has begun and is not complete. */
  awaitHead(): void
  /**
   * A head is complete. The intake pushes the bytes of the body into `body`; undefined if the request has none. `cost`: the memory of the
   * request without its body (bytes).
   */
  begin(head: Http1RequestHead, body: RequestBody | undefined, cost: number): void
  bodyRead(): void
  /** The current body is malformed. The intake reads nothing more. */
  bodyBroken(): void
  /** The number of received bytes that are not read yet has changed; a negative change means fewer bytes. */
  waits(change: number): void
  /** One more head is remembered. It takes `bytes` of memory. */
  keepsHead(bytes: number): void
  /** The bytes are not a valid request. The intake reads nothing more. */
  refuse(refusal: Refusal): void
}

/** The most unread bytes of the connection, and of a body, that are buffered. Beyond it the connection is not read (back-pressure). */
const MOST_WAITING = 64 * 1024

/** Bounds on chunk framing: a body of extensions alone, or endless trailers, would make the sidecar work for free. */
const CHUNKS: ChunkRules = {
  longestExtension: 256,
  mostExcess: 16 * 1024,
  longestTrailers: 8 * 1024,
  tolerant: false,
}

/** How many chunks are read before the turn budget is asked again: one read of the socket may bring 10,000 chunks. */
const MOST_CHUNKS = 256

/** How many heads without and with a body one connection remembers. A client can make each connection hold up to 27 KiB by them. */
const HEADS_KNOWN = 2
const UPLOADS_KNOWN = 1

/** The memory of a remembered head, as a multiple of its bytes: its parsed form is kept, too. */
const PARSED = 8

/** A head, and the memory of a request with it (bytes). */
interface ChargedHead {
  readonly head: Http1RequestHead
  readonly cost: number
}

const NOTHING = Buffer.alloc(0)

export const MALFORMED: Refusal = {
  kind: 'malformed',
  description: 'The bytes received are not an HTTP request.',
}

/**
 * Reads the requests of one connection, each only after the previous one is served. So pipelined requests reach the device in order
 * (RFC 9112 §9.3.2), cost only their bytes while they wait, and are never served on a connection that closes.
 */
export class Http1Intake {
  readonly #socket: Socket
  readonly #facts: ConnectionFacts
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>
  readonly #maxHeaderSize: number
  readonly #events: IntakeEvents
  readonly #head = new HeadReader('requests')
  /** Heads of requests that do not leave HTTP. Heads of uploads are apart: with a changing `Content-Length` they would displace others. */
  readonly #known = new HeadMemory<ChargedHead>(HEADS_KNOWN)
  readonly #knownUploads = new HeadMemory<ChargedHead>(UPLOADS_KNOWN)
  /** Received bytes that are not read yet. */
  #pending: Buffer = NOTHING
  /** The bytes received after `#pending`, and their memory. They are joined to it once, when they can be read: each join copies all. */
  #later: Buffer[] = []
  #laterCost = 0
  /** The budget of the client is used up, so the received bytes are read in a later turn of the event loop. */
  #deferred = false
  /** The remaining bytes of a body of known length; 0 without one. */
  #left = 0
  #chunked: ChunkedBody | undefined
  #pieces: BodyPieces | undefined
  #body: RequestBody | undefined
  /** `paused`: the client sends faster than the sidecar serves its requests or reads its body. */
  #state: 'reading' | 'paused' | 'stopped' = 'reading'
  /** The unread bytes that `waits` has reported, and the number of heads that `keepsHead` has reported. */
  #waiting = 0
  #kept = 0

  constructor(
    socket: Socket,
    facts: ConnectionFacts,
    { clock, maxHeaderSize }: IntakeRules,
    events: IntakeEvents,
  ) {
    this.#socket = socket
    this.#facts = facts
    this.#clock = clock
    this.#maxHeaderSize = maxHeaderSize
    this.#events = events
  }

  /** A part of a head has been read. */
  get withinHead(): boolean {
    return this.#head.begun
  }

  /** A part of a body has yet to arrive. */
  get withinBody(): boolean {
    return this.#body !== undefined
  }

  /** Received bytes wait for a later turn of the event loop. They may contain a request. */
  get deferred(): boolean {
    return this.#deferred
  }

  receive(chunk: Buffer): void {
    if (this.#state === 'stopped') return
    if (this.#pending.length === 0) this.#pending = chunk
    else {
      this.#later.push(chunk)
      this.#laterCost += chunk.length + PIECE
    }
    if (!this.#deferred && !this.#events.mayRead(chunk.length)) this.#deferred = true
    this.proceed()
  }

  /** Continues with the bytes that waited for a later turn. */
  readOn(): void {
    this.#deferred = false
    this.proceed()
  }

  /** Reads the pending bytes as far as possible now. */
  proceed(): void {
    while (!this.#deferred && this.#pending.length > 0 && !this.#socket.destroyed) {
      const body = this.#body
      if (body === undefined && !this.#events.mayBegin) break
      if (this.#later.length > 0) this.#join()
      if (body !== undefined) {
        if (!this.#readBody(body)) this.#breakOff()
      } else if (!this.#readHead()) break
    }
    this.#regulate()
  }

  #join(): void {
    this.#pending = Buffer.concat([this.#pending, ...this.#later])
    this.#later = []
    this.#laterCost = 0
  }

  /** Stops reading for good. Returns the received bytes that are not read. */
  stop(): Buffer {
    if (this.#later.length > 0) this.#join()
    const rest = this.#pending
    this.#state = 'stopped'
    this.#deferred = false
    this.#pending = NOTHING
    this.#body = undefined
    this.#tellWaiting()
    return rest
  }

  /** Reads a head. False if it is incomplete or refused. */
  #readHead(): boolean {
    const { length } = this.#pending
    // The memory is asked only at the first byte of a head, because the rest of a begun head may look like a complete one.
    const isStart = this.#head.length === 0
    const known = isStart
      ? (this.#known.find(this.#pending, 0, length) ?? this.#knownUploads.find(this.#pending, 0, length))
      : undefined
    if (known !== undefined) {
      this.#discard(known.bytes.length)
      this.#begin(known.head)
      return true
    }
    const most = this.#maxHeaderSize
    const tooMany = length > most
    const bytes = tooMany ? this.#pending.subarray(0, most) : this.#pending
    const progress = this.#head.read(bytes, 0, bytes.length)
    if (progress === 'fault') this.#events.refuse(MALFORMED)
    else if (progress === 'done') this.#takeHead()
    else if (tooMany) this.#events.refuse({ kind: 'header-too-large' })
    else if (this.#head.begun) this.#events.awaitHead()
    return progress === 'done'
  }

  #takeHead(): void {
    const bytes = this.#pending
    const { length } = this.#head
    const head = interpretRequest(this.#head.takeRequest(), this.#facts)
    this.#discard(length)
    if (head === undefined) this.#events.refuse(MALFORMED)
    else {
      const memory = head.bodyEnd === 0 ? this.#known : this.#knownUploads
      const charged = { head, cost: REQUEST + headCost(head) }
      if (!head.leavesHttp && memory.keep(bytes, 0, length, charged)) this.#keepsOneMore(length)
      this.#begin(charged)
    }
  }

  /** Charges a remembered head. A head that replaces another one is not charged: it counts as equally large. */
  #keepsOneMore(length: number): void {
    if (this.#kept >= HEADS_KNOWN + UPLOADS_KNOWN) return
    this.#kept += 1
    this.#events.keepsHead(PARSED * length)
  }

  #begin({ head, cost }: ChargedHead): void {
    if (head.bodyEnd === 0 || head.leavesHttp) this.#events.begin(head, undefined, cost)
    else this.#beginBody(head, cost, head.bodyEnd)
  }

  /** Removes the first `length` pending bytes, which have been read. */
  #discard(length: number): void {
    this.#pending = length === this.#pending.length ? NOTHING : this.#pending.subarray(length)
  }

  /** Begins a request with a body. The body bytes that came with the head are read first: if malformed, the device gets no request. */
  #beginBody(head: Http1RequestHead, cost: number, end: RequestBodyFraming): void {
    const body = new RequestBody(this.#clock, this.#regulate, MOST_WAITING, () => this.#deferred)
    this.#body = body
    this.#chunked = end === 'chunked' ? new ChunkedBody(CHUNKS) : undefined
    this.#pieces = end === 'chunked' ? new BodyPieces() : undefined
    this.#left = end === 'chunked' ? 0 : end
    const sound = this.#pending.length === 0 || this.#readBody(body)
    if (!sound) body.break()
    this.#events.begin(head, body, cost)
    if (!sound) this.#breakOff()
  }

  #breakOff(): void {
    this.stop()
    this.#events.bodyBroken()
  }

  /** Reads pending bytes of a body. False if they are malformed. */
  #readBody(body: RequestBody): boolean {
    const bytes = this.#pending
    const chunked = this.#chunked
    const pieces = this.#pieces
    if (chunked === undefined || pieces === undefined) {
      const size = Math.min(this.#left, bytes.length)
      this.#left -= size
      body.push(size === bytes.length ? bytes : bytes.subarray(0, size))
      this.#discard(size)
    } else {
      const at = chunked.read(bytes, 0, bytes.length, pieces.add, MOST_CHUNKS)
      if (!this.#events.mayTakeMore(pieces.count)) this.#deferred = true
      // The runs of data are joined, because each piece costs the reader of the body the same, at any size.
      const data = pieces.take(bytes, LARGE_PIECE)
      if (data !== undefined) body.push(data)
      if (at < 0) return false
      this.#discard(at)
    }
    if (chunked === undefined ? this.#left > 0 : !chunked.done) return true
    body.finish()
    this.#body = undefined
    this.#events.bodyRead()
    return true
  }

  #tellWaiting(): void {
    const waiting = this.#pending.length + this.#laterCost
    if (waiting === this.#waiting) return
    this.#events.waits(waiting - this.#waiting)
    this.#waiting = waiting
  }

  /** Pauses the connection while the buffers are full or the turn budget is used up, otherwise resumes it. */
  readonly #regulate = (): void => {
    this.#tellWaiting()
    if (this.#state === 'stopped') return
    const full =
      this.#deferred || this.#pending.length + this.#laterCost > MOST_WAITING || this.#body?.full === true
    if (full === (this.#state === 'paused')) return
    this.#state = full ? 'paused' : 'reading'
    if (full) this.#socket.pause()
    else this.#socket.resume()
  }
}
