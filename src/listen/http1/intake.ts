import type { Socket } from 'node:net'
import type { Refusal } from '../../http/refusal.ts'
import { type BodyReader, ChunkedBody, CountedBody } from '../../http1/body.ts'
import type { ChunkRules } from '../../http1/chunks.ts'
import { HeadReader } from '../../http1/head-reader.ts'
import { type Http1RequestHead, meaningOf, type RequestBodyFraming } from '../../http1/request-head.ts'
import { Http1Body } from './body.ts'

/** Whom the bytes of a connection concern. */
export interface IntakeEvents {
  /** Whether the next message may be read: the one before has been served, and the connection goes on. */
  readonly mayBegin: boolean
  /** Some of a head has come, and not all. */
  awaitHead(): void
  /** A head has come. What comes of its body, if it has one, is put there. */
  begin(head: Http1RequestHead, body: Http1Body | undefined): void
  /** The body that was being read has come to its end. */
  bodyRead(): void
  /** The body that was being read turned out to be none, and nothing more of the connection is read. */
  bodyBroken(): void
  /** The bytes are no request, and nothing more of them is read. */
  refuse(refusal: Refusal): void
}

/** So much (bytes) may wait while a request is being served; beyond it the client has to. */
const MOST_WAITING = 64 * 1024

/** A client that sends more beside its data than this is an attacker. Nobody needs its trailers here. */
const CHUNKS: ChunkRules = {
  longestExtension: 256,
  mostExcess: 16 * 1024,
  longestTrailers: 8 * 1024,
  tolerant: false,
}

const NOTHING = Buffer.alloc(0)

export const MALFORMED: Refusal = {
  kind: 'malformed',
  description: 'The bytes received are not an HTTP request.',
}

/**
 * Reads the messages of one connection, the next one only when the one before has been served: so what a client sends in
 * one go reaches the device in that order (RFC 9112 §9.3.2), costs no more than its bytes until then, and never becomes a
 * request on a connection that closes.
 */
export class Http1Intake {
  readonly #socket: Socket
  readonly #maxHeaderSize: number
  readonly #events: IntakeEvents
  readonly #head = new HeadReader('requests')
  /** What has been received and not been read. */
  #pending: Buffer = NOTHING
  #reader: BodyReader | undefined
  #body: Http1Body | undefined
  #stopped = false
  #held = false

  constructor(socket: Socket, maxHeaderSize: number, events: IntakeEvents) {
    this.#socket = socket
    this.#maxHeaderSize = maxHeaderSize
    this.#events = events
  }

  /** Some of a head has been read. */
  get withinHead(): boolean {
    return this.#head.begun
  }

  /** Some of a body is still to come. */
  get withinBody(): boolean {
    return this.#reader !== undefined
  }

  receive(chunk: Buffer): void {
    if (this.#stopped) return
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    this.proceed()
  }

  /** Goes on with what had to wait. */
  proceed(): void {
    while (this.#pending.length > 0 && !this.#socket.destroyed) {
      if (this.#reader !== undefined) {
        if (!this.#readBody(this.#reader)) this.#breakOff()
      } else if (!this.#events.mayBegin || !this.#readHead()) break
    }
    this.#regulate()
  }

  /** Nothing more of the connection is read. Gives what has been received of it and not been read. */
  stop(): Buffer {
    const rest = this.#pending
    this.#stopped = true
    this.#held = false
    this.#pending = NOTHING
    this.#reader = undefined
    this.#body = undefined
    return rest
  }

  /** False if there is not all of it. */
  #readHead(): boolean {
    const most = this.#maxHeaderSize
    const tooMany = this.#pending.length > most
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
    const { method, target, version, fields } = this.#head.take(bytes, 0)
    const head = meaningOf(method, target, version, fields)
    this.#pending = length === bytes.length ? NOTHING : bytes.subarray(length)
    if (head === undefined) this.#events.refuse(MALFORMED)
    else if (head.bodyEnd === 0 || head.leavesHttp) this.#events.begin(head, undefined)
    else this.#beginBody(head, head.bodyEnd)
  }

  /** What came with the head is read first: where that is none, the device never hears of the request. */
  #beginBody(head: Http1RequestHead, end: RequestBodyFraming): void {
    const body = new Http1Body(this.#regulate)
    this.#body = body
    this.#reader = end === 'chunked' ? new ChunkedBody(CHUNKS) : new CountedBody(end)
    const sound = this.#pending.length === 0 || this.#readBody(this.#reader)
    if (!sound) body.break()
    this.#events.begin(head, body)
    if (!sound) this.#breakOff()
  }

  #breakOff(): void {
    this.stop()
    this.#events.bodyBroken()
  }

  /** False where the bytes are no body. */
  #readBody(reader: BodyReader): boolean {
    const bytes = this.#pending
    const at = reader.read(bytes, 0, bytes.length, this.#pushData)
    if (at < 0) return false
    this.#pending = at === bytes.length ? NOTHING : bytes.subarray(at)
    if (!reader.done) return true
    this.#body?.finish()
    this.#reader = undefined
    this.#body = undefined
    this.#events.bodyRead()
    return true
  }

  readonly #pushData = (start: number, end: number): void => {
    const bytes = this.#pending
    this.#body?.push(end - start === bytes.length ? bytes : bytes.subarray(start, end))
  }

  /** Holds a client that sends ahead of its answers, or of whoever reads its body, and lets it go again. */
  readonly #regulate = (): void => {
    const full = this.#pending.length > MOST_WAITING || this.#body?.full === true
    if (full === this.#held) return
    this.#held = full
    if (full) this.#socket.pause()
    else this.#socket.resume()
  }
}
