import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Exchange, Outcome, Reply, RequestHead, ResponseHead } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'
import { type BodyReader, createBodyReader } from './body-reader.ts'
import { bodyFraming, type RequestFacts, requestHead } from './http1-head.ts'
import { lingerOnClose } from './linger.ts'
import { OutcomeLatch } from './outcome.ts'
import { StreamedResponse } from './streamed-response.ts'

/** A small body that nobody reads is swallowed to keep the connection; this long it may take to arrive (ms). */
const SWALLOW_TIMEOUT = 5_000

/** How long a response may pause when its client has closed its sending side and so may be gone (ms). */
const HALF_CLOSED_PATIENCE = 500
/** Interim responses sent meanwhile to a client that has none yet. */
const HALF_CLOSED_PROBES = 4

/** One request on an HTTP/1 connection. Its connection tells it when the client has gone (`clientGone`). */
export class Http1Exchange implements Exchange {
  readonly head: RequestHead
  readonly #req: IncomingMessage
  readonly #res: ServerResponse
  readonly #ended = new OutcomeLatch()
  #reader: BodyReader | undefined
  #stream: StreamedResponse | undefined
  /** The client waits for `100 Continue`. Until it has it, Node closes the connection behind any answer. */
  #expects: boolean
  #responseBytes = 0
  #cut = false
  #closing = false
  #broken = false
  #onBroken: (() => void) | undefined

  constructor(req: IncomingMessage, res: ServerResponse, facts: RequestFacts) {
    this.#req = req
    this.#res = res
    this.#expects = facts.expects
    this.head = requestHead(req, facts)
    res.on('finish', () => this.settle('complete'))
  }

  get answered(): boolean {
    return this.#res.headersSent || this.#ended.settled
  }

  get ended(): boolean {
    return this.#ended.settled
  }

  get unread(): boolean {
    return !this.#req.complete
  }

  body(stallTimeout: number): AsyncIterable<Buffer> {
    if (this.#expects && this.#mayInform && this.unread) {
      this.#expects = false
      this.#res.writeContinue()
    }
    this.#reader ??= createBodyReader(this.#req, () => this.#req.complete)
    if (this.#broken) this.#reader.break()
    return this.#reader.read(stallTimeout)
  }

  reply(reply: Reply, { close = false }: { readonly close?: boolean } = {}): void {
    if (this.answered) return
    const res = this.#res
    if (close || this.#leavesBody) this.closeAfter()
    res.writeHead(reply.status, this.#withConnection(reply.fields))
    if (this.head.method !== 'HEAD') this.#responseBytes = Buffer.byteLength(reply.body)
    res.end(reply.body)
    if (!this.#closing && carriesBody(this.#req) && this.unread) this.#swallow()
  }

  inform(status: number, fields: Fields): void {
    if (!this.#mayInform) return
    // Node 24 has no general call for interim responses; a client that gets none loses nothing but time.
    this.#res.writeInformation?.(status, [...fields])
  }

  begin(head: ResponseHead): void {
    if (this.answered) return
    // The device answered before the upload was over: what is left of it must not be read as a request.
    if (this.#leavesBody) this.closeAfter()
    this.#stream = new StreamedResponse(this.#res)
    this.#stream.begin(head, this.#withConnection(head.fields))
  }

  write(chunk: Buffer): boolean {
    if (this.ended) return true
    this.#responseBytes += chunk.length
    return this.#stream?.write(chunk) ?? true
  }

  end(lastChunk?: Buffer): void {
    if (this.ended) return
    if (lastChunk !== undefined) this.#responseBytes += lastChunk.length
    this.#stream?.end(lastChunk)
  }

  cut(): void {
    if (this.ended) return
    this.#cut = true
    this.#req.socket.destroy()
    this.settle('cut')
  }

  onDrain(listener: () => void): void {
    this.#res.on('drain', listener)
  }

  onEnd(listener: (outcome: Outcome) => void): void {
    this.#ended.listen(listener)
  }

  onBroken(listener: () => void): void {
    this.#onBroken = listener
  }

  /** The connection closes behind this exchange's response. */
  closeAfter(): void {
    if (this.#closing) return
    this.#closing = true
    lingerOnClose(this.#req.socket)
  }

  /** The connection will carry no other request behind this one. */
  get closing(): boolean {
    return this.#closing
  }

  /** The rest of the request body will never come, or cannot be told from the next request. */
  breakBody(): void {
    if (this.#broken) return
    this.#broken = true
    this.#reader?.break()
    this.#onBroken?.()
  }

  /**
   * The client has closed its sending side. It may still be waiting for its answer, or it may have left: only sending
   * something tells, because a connection that nobody holds any more is reset. An interim response is such a thing,
   * and means nothing to whoever is still there. A response that is under way is its own test, as long as it moves.
   */
  halfClosed(): void {
    if (this.unread) this.breakBody()
    else if (this.answered) this.#watchProgress()
    else this.#probe(HALF_CLOSED_PROBES)
  }

  /** The connection is gone. */
  clientGone(): void {
    this.#reader?.break()
    this.settle(this.#cut ? 'cut' : 'aborted')
  }

  protected settle(end: Outcome['end'], tunnel?: Partial<Outcome>): void {
    this.#ended.settle({
      status: this.#res.headersSent ? this.#res.statusCode : 0,
      end,
      requestBytes: this.#reader?.bytes ?? 0,
      responseBytes: this.#responseBytes,
      ...tunnel,
    })
  }

  /** HTTP/1.0 knows no interim responses, and a tunnel has taken the connection away from its response. */
  get #mayInform(): boolean {
    return this.head.version === '1.1' && !this.answered && this.#res.socket !== null
  }

  /** What follows on the connection could be the rest of a body that nobody will read. */
  get #leavesBody(): boolean {
    return this.#expects || ((this.#reader !== undefined || this.#broken) && this.unread)
  }

  /** The first probe draws the reset, which the next one meets. */
  #probe(left: number): void {
    if (this.answered || left === 0) return
    this.inform(102, [])
    const timer = setTimeout(() => this.#probe(left - 1), HALF_CLOSED_PATIENCE / HALF_CLOSED_PROBES)
    this.onEnd(() => clearTimeout(timer))
  }

  #watchProgress(): void {
    const before = this.#responseBytes
    const timer = setTimeout(() => {
      if (this.#responseBytes === before) this.#req.socket.destroy()
      else this.#watchProgress()
    }, HALF_CLOSED_PATIENCE)
    this.onEnd(() => clearTimeout(timer))
  }

  #withConnection(fields: Fields): string[] {
    // Node only reads what it is given; its types forget to say so.
    return this.#closing ? [...fields, 'Connection', 'close'] : (fields as string[])
  }

  #swallow(): void {
    const timer = setTimeout(() => {
      if (this.unread) this.#req.socket.destroy()
    }, SWALLOW_TIMEOUT)
    this.#req.once('close', () => clearTimeout(timer))
  }
}

/** A request without one is complete as soon as whoever parsed its head goes on. */
function carriesBody({ rawHeaders }: IncomingMessage): boolean {
  return bodyFraming(rawHeaders) !== 0
}
