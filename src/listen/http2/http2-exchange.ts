import { constants, type ServerHttp2Stream } from 'node:http2'
import type { RequestHead, ResponseHead } from '../../http/exchange.ts'
import type { Fields } from '../../http/fields.ts'
import { limitFields } from '../../http/limit-fields.ts'
import type { LocalResponse } from '../../http/refusal.ts'
import { endsWithHead } from '../../http1/response-writer.ts'
import type { Holder, Holding } from '../../memory/account.ts'
import { afterTurn, type Timer } from '../../system/clock.ts'
import { TurnBudget } from '../../system/turn-budget.ts'
import { LARGE_PIECE, recycle } from '../../system/write-soon.ts'
import { ListenerExchange } from '../listener-exchange.ts'
import { RequestBody } from '../request-body.ts'
import { headersOf, RESET_CONTENT, type StreamFacts, withoutLength } from './http2-heads.ts'
import { bodyOf, discardUpload, isClean } from './upload.ts'

/** A response with a lower status is held while its upload goes on: see `begin`. */
const LEAST_ERROR = 400
/** How long (ms) such a response is held if it is not complete. */
const HOLD = 50

const NO_BODY = { endStream: true }
const BODY_FOLLOWS = { endStream: false }

/**
 * The device is paused while this many bytes of a response wait for the client. The mark is smaller than one piece of a response, so at
 * most one piece and this many bytes wait. Node's own mark (64 KiB) would admit two pieces: the first one, with the head, stays just below
 * it.
 */
const HIGH_WATER_MARK = 16 * 1024

const NONE: Fields = []

/** A stream that is destroyed with this error is reset with INTERNAL_ERROR. All streams share it: each new error costs a stack trace. */
const CUT = new Error('the response was cut')

const NOTHING = Buffer.alloc(0)

const ignore = (): void => {}

const EXCHANGE = Symbol('exchange')

/** A stream with a reference to its exchange while the stream is open. */
interface StreamOfExchange extends ServerHttp2Stream {
  [EXCHANGE]?: Http2Exchange | undefined
}

/**
 * One listener for all streams instead of a closure for each. Node's tables keep the closed streams of a session until a full garbage
 * collection, and a closure would keep the whole request with its stream.
 */
function onStreamClosed(this: StreamOfExchange): void {
  const exchange = this[EXCHANGE]
  this[EXCHANGE] = undefined
  exchange?.streamClosed()
}

export class Http2Exchange extends ListenerExchange {
  readonly #stream: ServerHttp2Stream
  readonly #facts: StreamFacts<Http2Exchange>
  /** The head of an early response, until `#hold` releases it. */
  #held: ResponseHead | undefined
  #hold: Timer | undefined
  /** The index in the `OpenExchanges` of the session; -1 until it enters. */
  index = -1
  /** The next exchange that arrived in the same turn of the event loop. */
  next: Http2Exchange | undefined = undefined
  /** The holding that the stream is charged to. */
  holding: Holding | undefined = undefined
  /** The charge for the stream, its head and its window (bytes). */
  charged = 0
  /** The device is paused, because the client reads too slowly. */
  #full = false
  /** The response bytes that the client had read at the last check. */
  #taken = 0
  /** The time (ms) of the first check since which the client has read nothing; undefined if it waits for nothing or reads on. */
  #stalledAt: number | undefined

  constructor(stream: ServerHttp2Stream, head: RequestHead, facts: StreamFacts<Http2Exchange>) {
    super(head)
    this.#stream = stream
    this.#facts = facts
    // The `close` event of a broken stream is handled below. Without a listener the error would end the process.
    stream.on('error', ignore)
    const own: StreamOfExchange = stream
    own[EXCHANGE] = this
    own.on('close', onStreamClosed)
  }

  streamClosed(): void {
    const end = this.#stream.writableEnded && isClean(this.#stream) ? 'complete' : 'aborted'
    this.settle(end)
    this.#facts.onRead(this.unreadBytes)
    this.#facts.onClosed(this, this.outcome ?? end)
  }

  get answered(): boolean {
    if (this.#held !== undefined || this.outcome !== undefined) return true
    return this.#stream.headersSent || this.#stream.destroyed
  }

  override get unread(): boolean {
    return !this.#stream.readableEnded && !this.#stream.endAfterHeaders
  }

  override get arrived(): number {
    const stream = this.#stream
    if (stream.endAfterHeaders || stream.state.remoteClose === 1) return Number.POSITIVE_INFINITY
    return (this.requestBody?.arrived ?? 0) + stream.readableLength
  }

  /** For a closed stream: whether the upload was refused or reset, so that the client may have sent bytes that were not read. */
  get refusedUpload(): boolean {
    return !this.#stream.endAfterHeaders && (this.outcome !== 'complete' || this.status >= LEAST_ERROR)
  }

  /** The code of the reset that closed the stream (RFC 9113 §7). */
  get resetCode(): number | undefined {
    return this.#stream.rstCode
  }

  /** The request was sent to the device, and the exchange has not ended. */
  get atDevice(): boolean {
    return this.sentAt > 0 && !this.ended
  }

  /** Response bytes that wait for the client. */
  get queued(): number {
    return this.#stream.writableLength
  }

  /** Bytes of the body that have arrived and wait to be read. */
  get unreadBytes(): number {
    return this.#stream.readableLength
  }

  /** How long (ms) the client has read nothing although response bytes, or the end of the response, wait for it. */
  unreadFor(now: number): number {
    const taken = this.responseBytes - this.queued
    const waits = this.queued > 0 || this.#stream.writableEnded
    if (!waits || taken !== this.#taken) this.#stalledAt = undefined
    this.#taken = taken
    if (!waits) return 0
    this.#stalledAt ??= now
    return now - this.#stalledAt
  }

  body(stallTimeout: number): AsyncIterable<Buffer> {
    return this.#openBody().within(stallTimeout)
  }

  get #turns(): TurnBudget {
    return this.holding?.client.turns ?? new TurnBudget()
  }

  #openBody(): RequestBody {
    if (this.requestBody !== undefined) return this.requestBody
    const stream = this.#stream
    if (this.head.survey.expect[0]?.toLowerCase() === '100-continue') this.inform(100, [])
    const body = stream.endAfterHeaders
      ? RequestBody.empty()
      : bodyOf(this.#facts.clock, stream, this.#turns, this.#facts.onRead)
    if (this.ended || stream.destroyed) body.break()
    this.requestBody = body
    return body
  }

  respond(response: LocalResponse): void {
    if (this.answered) return
    const body = Buffer.from(response.body)
    if (this.#respond(response, ['X-Request-Id', this.requestId])) {
      this.responseBytes = body.length
      this.#stream.end(body)
      this.#boundQueue()
    }
    this.#stopUpload()
  }

  inform(status: number, fields: Fields): void {
    if (!this.answered) this.#stream.additionalHeaders(headersOf(status, fields))
  }

  /**
   * curl 7.88 stalls if a response below 400 begins before its upload has ended: it reads nothing more, so neither RST_STREAM nor
   * WINDOW_UPDATE reaches it. So such a response is held for `HOLD`. If it is complete by then, it is held until `discardUpload` ends.
   */
  begin(head: ResponseHead): void {
    if (this.answered) return
    if (this.unread && head.status < LEAST_ERROR && head.status !== RESET_CONTENT) {
      this.#held = head
      this.#stream.cork()
      this.#hold = this.#facts.clock.after(HOLD, this.#release)
    } else this.#respond(head, NONE)
  }

  readonly #release = (): void => {
    const head = this.#held
    this.#held = undefined
    this.#hold?.cancel()
    if (head === undefined || this.ended || this.#stream.destroyed) return
    try {
      this.#respond(head, NONE)
      this.#stream.uncork()
    } catch {
      this.cut()
    }
  }

  get takesLarge(): boolean {
    return this.#facts.takesLarge()
  }

  write(chunk: Buffer): boolean {
    if (this.#stream.writableEnded || this.#stream.destroyed) return true
    this.responseBytes += chunk.length
    if (chunk.length < LARGE_PIECE) this.#stream.write(chunk, this.#onWritten)
    else this.#writeSpent(chunk)
    if (this.queued < HIGH_WATER_MARK) return true
    this.#release()
    this.#full = true
    this.#boundQueue()
    return false
  }

  /**
   * Writes a large piece. Recycles its memory one turn of the event loop after the callback of the write: by then Node has encrypted or
   * dropped the bytes. At the callback it may still need them, because Node 26.10 closes a stream before it reads the last bytes.
   */
  #writeSpent(chunk: Buffer): void {
    this.#stream.write(chunk, (error) => {
      afterTurn(() => recycle(chunk, error))
      this.#onWritten(error)
    })
  }

  readonly #onWritten = (error: Error | null | undefined): void => {
    if (error instanceof Error || !this.#full || this.queued >= HIGH_WATER_MARK) return
    this.#full = false
    this.drained()
  }

  end(lastChunk?: Buffer): void {
    const early = this.unread && (this.#held ?? this).status < LEAST_ERROR && !this.#stream.destroyed
    this.#hold?.cancel()
    if (early) discardUpload(this.#facts.clock, this.#stream, this.#openBody(), () => this.#finish(lastChunk))
    else this.#finish(lastChunk)
  }

  #finish(lastChunk: Buffer | undefined): void {
    this.#release()
    if (this.#stream.writableEnded || this.#stream.destroyed) return
    this.responseBytes += lastChunk?.length ?? 0
    if (lastChunk !== undefined && lastChunk.length >= LARGE_PIECE) {
      this.#writeSpent(lastChunk)
      this.#stream.end()
    } else this.#stream.end(lastChunk)
    this.#boundQueue()
    this.#stopUpload()
  }

  /**
   * Resets the stream, so the client sees a broken transfer. The code is INTERNAL_ERROR, because clients such as Node's take CANCEL for a
   * complete response (C24). Without an error, `destroy` would send END_STREAM. An endless response, such as a stream of events, is not
   * broken when Postern ends it, for example with its grant (C8): its code is CANCEL.
   */
  cut(): void {
    if (this.ended) return
    this.#hold?.cancel()
    if (this.endedFor !== undefined && this.#isEndless) this.#cancel()
    else this.#stream.destroy(CUT)
    this.settle('cut')
  }

  /** The response is endless by its media type, and its head is sent. */
  get #isEndless(): boolean {
    const isStream = this.streamAt !== 0 && this.streamAt <= this.headAt
    return isStream && this.#stream.headersSent && !this.#stream.writableEnded
  }

  /** Resets the stream with CANCEL. The empty write is queued, because without a queued write `close` sends END_STREAM first. */
  #cancel(): void {
    this.#stream.write(NOTHING)
    this.#stream.close(constants.NGHTTP2_CANCEL)
    this.#stream.destroy()
  }

  /** Sends the head. Returns whether a body follows. Throws on a status or a field that HTTP/2 cannot carry. */
  #respond({ status, fields }: ResponseHead, own: Fields): boolean {
    const hasBody = status !== RESET_CONTENT && !endsWithHead(this.head.method, status)
    const sent = status === RESET_CONTENT ? withoutLength(fields) : fields
    const fixed = [':status', String(status)]
    const raw = fixed.concat(sent, limitFields(this), this.requestId === '' ? NONE : own)
    this.#stream.respond(raw, hasBody ? BODY_FOLLOWS : NO_BODY)
    this.status = status
    return hasBody
  }

  #boundQueue(): void {
    if (!this.#facts.mayQueue()) this.cut()
  }

  /** When the response is sent, asks the client to stop an upload that will not be read (RFC 9113 §8.1). */
  #stopUpload(): void {
    const stream = this.#stream
    if (!this.unread) return
    const stop = (): void => {
      stream.close(constants.NGHTTP2_NO_ERROR)
      // Discards the received bytes. Until all are read, Node keeps the stream, and the connection of a client that has left.
      this.#openBody().break()
    }
    if (stream.writableFinished) stop()
    else stream.once('finish', stop)
  }
}

/** A stream that a trusted proxy carries. It is charged to the client that the proxy names. The account can close it alone. */
export class CarriedStream implements Holder {
  readonly working = true
  /** Undefined for a refused stream. */
  exchange: Http2Exchange | undefined = undefined

  get atDevice(): boolean {
    return this.exchange?.atDevice === true
  }

  /** `OpenExchanges.cutUnread` gives up unread responses. */
  cutUnread(): number {
    return 0
  }

  cut(): void {
    this.exchange?.cut()
  }
}
