import type { Socket } from 'node:net'
import type { Exchange, ResponseHead } from '../../http/exchange.ts'
import type { Fields } from '../../http/fields.ts'
import { limitLines } from '../../http/limit-fields.ts'
import type { LocalResponse } from '../../http/refusal.ts'
import type { Http1RequestHead } from '../../http1/request-head.ts'
import { latin1Of, type RenderedHead, renderHead, renderInterim } from '../../http1/response-writer.ts'
import type { Clock } from '../../system/clock.ts'
import { endBroken } from '../linger.ts'
import { ListenerExchange } from '../listener-exchange.ts'
import { RequestBody } from '../request-body.ts'
import { Http1Response } from './http1-response.ts'

export interface Http1Transport {
  readonly socket: Socket
  /** The TCP socket below `socket`: the same one in cleartext. */
  readonly wire: Socket
  readonly rules: {
    readonly clock: Pick<Clock, 'every'>
    /** The field lines that keep the connection open, with their line ends. */
    readonly keepAliveFields: string
    /** The current `Date` line, with its line end. */
    readonly dateLine: () => string
  }
  /** Closes the connection in steps, and discards the input of the client meanwhile. */
  readonly linger: () => void
  /** Call this when the client reads too slowly. `bytes`: the queued bytes of the response. */
  readonly stalled: (bytes: number) => void
  /** The callback of a response's last write. */
  readonly onFlushed: (error?: Error | null) => void
}

/**
 * The state of the connection after the response.
 *
 * - `undecided`: until the head is written.
 * - `stays`: the next request is read.
 * - `closes`: the connection lingers and closes. Without the lingering, bytes in flight from the client would cause a reset, and the client
 *   could lose the response.
 * - `ends`: as `closes`, but only the close ends the response.
 */
type Afterwards = 'undecided' | 'stays' | 'closes' | 'ends'

/** One request on an HTTP/1 connection. The connection calls its methods for the actions of the client. */
export class Http1Exchange extends ListenerExchange {
  protected readonly transport: Http1Transport
  /** The client asked for `100 Continue`, which is not sent yet. It may send its body without waiting. */
  #expects: boolean
  /** The response, while it is being sent in pieces. */
  #response: Http1Response | undefined
  afterwards: Afterwards

  /** The connection pushes the request's bytes into `body`; undefined if the request has no body. */
  constructor(transport: Http1Transport, request: Http1RequestHead, body: RequestBody | undefined) {
    super(request, body)
    this.transport = transport
    this.afterwards = request.persists && !request.leavesHttp ? 'undecided' : 'closes'
    this.#expects = request.expects
  }

  get answered(): boolean {
    return this.status !== 0 || this.outcome !== undefined
  }

  body(stallTimeout: number): AsyncIterable<Buffer> {
    if (this.#expects && this.unread && this.#mayInform) {
      this.#expects = false
      this.transport.socket.write(renderInterim(100, []), 'latin1')
    }
    return (this.requestBody ?? RequestBody.empty()).within(stallTimeout)
  }

  respond(response: LocalResponse, close = false): void {
    if (this.answered) return
    if (close || this.#leavesBody) this.afterwards = 'closes'
    const body = latin1Of(response.body)
    const own = `${limitLines(this)}${this.requestId === '' ? '' : `X-Request-Id: ${this.requestId}\r\n`}`
    const head = this.#render(response, own, body.length)
    const bodiless = head.framing === 'none'
    if (!bodiless) this.responseBytes = body.length
    this.transport.socket.write(bodiless ? head.text : head.text + body, 'latin1', this.transport.onFlushed)
  }

  inform(status: number, fields: Fields): void {
    if (this.#mayInform) this.transport.socket.write(renderInterim(status, fields), 'latin1')
  }

  begin(head: ResponseHead): void {
    if (this.answered) return
    // The device responds before the upload is complete. The rest of the upload must not be read as a request.
    if (this.#leavesBody) this.afterwards = 'closes'
    this.#response = new Http1Response(this.transport.socket, this.#render(head, limitLines(this)))
  }

  get takesLarge(): boolean {
    return true
  }

  write(chunk: Buffer): boolean {
    const response = this.#response
    if (response === undefined || this.ended) return true
    if (!response.fits(chunk.length, false)) {
      this.cut()
      return true
    }
    this.responseBytes += chunk.length
    const taken = response.write(chunk)
    if (!taken) this.transport.stalled(this.transport.socket.writableLength)
    return taken
  }

  end(lastChunk?: Buffer): void {
    const response = this.#response
    if (response === undefined || this.ended) return
    const size = lastChunk?.length ?? 0
    if (!response.fits(size, true)) {
      this.cut()
      return
    }
    this.responseBytes += size
    this.#response = undefined
    response.end(lastChunk, this.transport.onFlushed)
  }

  cut(): void {
    if (this.ended) return
    // While the client still sends, a close would cause a reset, and the client would lose the received part of the response. Lingering
    // avoids that, and the missing last bytes show that the response is broken.
    if (this.unread && this.#response !== undefined && this.afterwards !== 'ends') {
      this.#response.flush()
      this.transport.linger()
    } else this.#closeBroken()
    this.settle('cut')
  }

  /** Closes the connection without sending more. A response that ends with the connection must not look complete (C24). */
  #closeBroken(): void {
    const { socket, wire } = this.transport
    if (this.afterwards === 'ends') endBroken(socket, wire)
    else socket.destroy()
  }

  /** Call this when the client has closed its sending side. */
  halfClosed(): void {
    if (this.unread) this.breakBody()
    else probeWhileContested(this.transport.rules.clock, this, () => this.othersWait?.() === true)
  }

  /** Call this when the rest of the request body will never arrive, or its end is uncertain. */
  breakBody(): void {
    this.requestBody?.break()
  }

  serverStopping(): void {
    if (!this.answered) this.afterwards = 'closes'
  }

  clientGone(): void {
    this.settle('aborted')
  }

  /** An interim response may be sent. HTTP/1.0 has none. */
  get #mayInform(): boolean {
    return this.head.version === '1.1' && !this.answered
  }

  /** The next bytes on the connection may be the rest of an unread request body. */
  get #leavesBody(): boolean {
    return this.#expects || this.requestBody?.begun === true
  }

  #render(head: ResponseHead, own: string, size?: number): RenderedHead {
    const { transport } = this
    const rendered = renderHead(head, size, {
      method: this.head.method,
      oldClient: this.head.version === '1.0',
      keepAliveFields: this.afterwards === 'undecided' ? transport.rules.keepAliveFields : undefined,
      date: transport.rules.dateLine(),
      own,
    })
    this.status = head.status
    this.afterwards = rendered.persists ? 'stays' : rendered.framing === 'close' ? 'ends' : 'closes'
    return rendered
  }
}

/** The time between two probes (ms). The second probe detects a client that has left, so it loses its place within a second. */
const INTERVAL = 250

type Probed = Pick<Exchange, 'answered' | 'inform' | 'onEnd'>

/**
 * Probes a half-closed client while its exchange is `contested`: other requests wait for its place at the device.
 *
 * A client that still waits for its response and a client that has closed its connection send the same FIN. Only a write tells them apart:
 * the kernel of a client that has left replies to the first probe with a reset, so the second probe fails. A probe is an interim response.
 * Primitive scripts take that for the final response, so probes are sent only while they are needed.
 *
 * Without probes, the request of a client that has left continues until the device responds and that write fails, or until the device's
 * deadlines (`upstream.response_timeout`, `upstream.idle_timeout`). HTTP/1.0 clients are never probed, because HTTP/1.0 has no interim
 * responses. A response that has begun needs no probes, because its own writes fail.
 */
export function probeWhileContested(
  clock: Pick<Clock, 'every'>,
  exchange: Probed,
  contested: () => boolean,
): void {
  if (exchange.answered) return
  const timer = clock.every(INTERVAL, () => {
    if (exchange.answered) timer.cancel()
    else if (contested()) exchange.inform(102, [])
  })
  exchange.onEnd(() => timer.cancel())
}
