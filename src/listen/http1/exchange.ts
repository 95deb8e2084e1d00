import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Exchange, Outcome, RequestHead, ResponseHead } from '../../http/exchange.ts'
import type { Fields } from '../../http/fields.ts'
import type { Reply } from '../../http/reply.ts'
import { type Http1RequestHead, requestHead } from '../../http1/request-head.ts'
import { latin1Of, type RenderedHead, renderHead, renderInterim } from '../../http1/response-writer.ts'
import { endBroken } from '../linger.ts'
import { OutcomeLatch } from '../outcome.ts'
import { Http1Body } from './body.ts'
import { probeWhileContested } from './half-closed.ts'
import { Http1Response } from './response.ts'

/** What an exchange needs of its connection. */
export interface Http1Transport {
  readonly socket: Socket
  /** The TCP socket below `socket`: the same one in cleartext. */
  readonly wire: Socket
  /** What all requests of the connection share. */
  readonly facts: Pick<RequestHead, 'secure' | 'peer' | 'localPort'>
  /** The field lines that keep the connection open, with their line ends. */
  readonly keepAliveFields: string
  /** The current `Date` line, with its line end. */
  dateLine(): string
  /** The callback of a response's last write. */
  readonly onFlushed: (error?: Error | null) => void
}

const never = (): boolean => false

/** One request on an HTTP/1 connection. The connection reports what the client does. */
export class Http1Exchange implements Exchange {
  readonly head: RequestHead
  protected readonly transport: Http1Transport
  readonly #ended = new OutcomeLatch()
  readonly #mayPersist: boolean
  readonly #body: Http1Body | undefined
  /** The client waits for `100 Continue`. Until it receives that, it may or may not send its body. */
  #expects: boolean
  /** The response, while it is being sent in pieces. */
  #response: Http1Response | undefined
  /** Only closing the connection ends the response. Still set while the last bytes are queued. */
  #endsByClosing = false
  #status = 0
  #sent = 0
  #persists = false
  #closing = false
  #cut = false
  #othersWait = never
  #onDrain: (() => void) | undefined

  /** The connection pushes the request's bytes into `body`; undefined if the request has no body. */
  constructor(transport: Http1Transport, request: Http1RequestHead, body: Http1Body | undefined) {
    this.transport = transport
    this.head = requestHead(request, transport.facts)
    this.#mayPersist = request.persists && !request.leavesHttp
    this.#expects = request.expects
    this.#body = body
  }

  get answered(): boolean {
    return this.#status !== 0 || this.#ended.settled
  }

  get ended(): boolean {
    return this.#ended.settled
  }

  get unread(): boolean {
    return this.#body?.unread === true
  }

  get broken(): boolean {
    return this.#body?.broken === true
  }

  /** The response, which has begun, keeps the connection open. */
  get persists(): boolean {
    return this.#persists
  }

  /** No other request follows on the connection. It lingers, so that bytes in flight do not reset it under the response. */
  get closing(): boolean {
    return this.#closing
  }

  get arrived(): number {
    return this.#body?.arrived ?? Number.POSITIVE_INFINITY
  }

  async arrival(stallTimeout: number): Promise<void> {
    this.body(stallTimeout)
    await this.#body?.arrival()
  }

  body(stallTimeout: number): AsyncIterable<Buffer> {
    if (this.#expects && this.unread && this.#mayInform) {
      this.#expects = false
      this.transport.socket.write(renderInterim(100, []), 'latin1')
    }
    return (this.#body ?? Http1Body.empty()).within(stallTimeout)
  }

  reply(reply: Reply, { close = false }: { readonly close?: boolean } = {}): void {
    if (this.answered) return
    if (close || this.#leavesBody) this.closeAfter()
    const body = latin1Of(reply.body)
    const reason = STATUS_CODES[reply.status] ?? 'unknown'
    const head = this.#render({ status: reply.status, reason, fields: reply.fields }, body.length)
    const bodiless = head.framing === 'none'
    if (!bodiless) this.#sent = body.length
    this.transport.socket.write(bodiless ? head.text : head.text + body, 'latin1', this.transport.onFlushed)
  }

  inform(status: number, fields: Fields): void {
    if (this.#mayInform) this.transport.socket.write(renderInterim(status, fields), 'latin1')
  }

  begin(head: ResponseHead): void {
    if (this.answered) return
    // The device responds before the upload is complete: the rest of the upload must not be read as a request.
    if (this.#leavesBody) this.closeAfter()
    this.#response = new Http1Response(this.transport.socket, this.#render(head), this.transport.onFlushed)
  }

  write(chunk: Buffer): boolean {
    const response = this.#response
    if (response === undefined || this.ended) return true
    if (response.exceeds(chunk.length)) {
      this.cut()
      return true
    }
    this.#sent += chunk.length
    return response.write(chunk)
  }

  end(lastChunk?: Buffer): void {
    const response = this.#response
    if (response === undefined || this.ended) return
    const size = lastChunk?.length ?? 0
    if (response.exceeds(size) || response.fallsShort(size)) {
      this.cut()
      return
    }
    this.#sent += size
    this.#response = undefined
    response.end(lastChunk)
  }

  cut(): void {
    if (this.ended) return
    this.#cut = true
    this.abandon()
    this.settle('cut')
  }

  contestedWhile(othersWait: () => boolean): void {
    this.#othersWait = othersWait
  }

  onDrain(listener: () => void): void {
    this.#onDrain = listener
  }

  onEnd(listener: (outcome: Outcome) => void): void {
    this.#ended.listen(listener)
  }

  onBroken(listener: () => void): void {
    this.#body?.onBroken(listener)
  }

  /** The connection closes after the response of this exchange. */
  closeAfter(): void {
    this.#closing = true
  }

  /** Closes the connection without sending more. A response that ends with the connection must not look complete (C24). */
  abandon(): void {
    const { socket, wire } = this.transport
    if (this.#endsByClosing) endBroken(socket, wire)
    else socket.destroy()
  }

  /** The client has read the queued bytes. */
  drained(): void {
    this.#onDrain?.()
  }

  /** The client has closed its sending side. */
  halfClosed(): void {
    if (this.unread) this.breakBody()
    else probeWhileContested(this, () => this.#othersWait())
  }

  /** The rest of the request body will never arrive, or its end is uncertain. */
  breakBody(): void {
    this.#body?.break()
  }

  /** The sidecar stops. */
  serverStopping(): void {
    if (!this.answered) this.closeAfter()
  }

  clientGone(): void {
    this.settle(this.#cut ? 'cut' : 'aborted')
  }

  settle(
    end: Outcome['end'],
    status: number = this.#status,
    requestBytes: number = this.#body?.bytes ?? 0,
    responseBytes: number = this.#sent,
  ): void {
    this.#body?.drop()
    this.#ended.settle({ status, end, requestBytes, responseBytes })
  }

  /** HTTP/1.0 has no interim responses. */
  get #mayInform(): boolean {
    return this.head.version === '1.1' && !this.answered
  }

  /** The next bytes on the connection may be the rest of an unread request body. */
  get #leavesBody(): boolean {
    return this.#expects || this.#body?.begun === true
  }

  #render(head: ResponseHead, size?: number): RenderedHead {
    const rendered = renderHead(head, size, {
      method: this.head.method,
      oldClient: this.head.version === '1.0',
      keepAliveFields: this.#mayPersist && !this.#closing ? this.transport.keepAliveFields : undefined,
      date: this.transport.dateLine(),
    })
    this.#status = head.status
    this.#persists = rendered.persists
    this.#endsByClosing = rendered.framing === 'close'
    return rendered
  }
}
