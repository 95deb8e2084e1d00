import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { UpgradeExchange } from '../http/exchange.ts'
import { Http1Exchange } from './http1-exchange.ts'
import type { RequestFacts } from './http1-head.ts'

/** What a client may send ahead of the answer to its upgrade (bytes); WebSocket clients send nothing. */
const LARGEST_ADVANCE = 64 * 1024

/** An upgrade. Refused, it is answered like any request and the connection closed; otherwise it becomes a tunnel. */
export class Http1UpgradeExchange extends Http1Exchange implements UpgradeExchange {
  readonly connection: Socket
  readonly early: Buffer
  readonly #response: ServerResponse
  /** Byte counts of the connection when the tunnel began. */
  #tunnel: { readonly read: number; readonly written: number } | undefined
  #advance: Buffer[] = []
  #advanced = 0

  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    facts: Pick<RequestFacts, 'secure' | 'localPort'>,
    early: Buffer,
  ) {
    super(req, res, { ...facts, upgrade: req.method !== 'CONNECT', expects: false })
    const socket = req.socket
    this.connection = socket
    this.early = early
    this.#response = res
    // The parser has left this connection, so nothing behind this request can be read as another one.
    this.closeAfter()
    // A response to a client that has left fails; that is the client's affair.
    res.on('error', () => {})
    res.assignSocket(socket)
    res.once('finish', () => {
      res.detachSocket(socket)
      socket.destroySoon()
    })
  }

  /** A tunnel is past answering, although no response of ours has begun it. */
  override get answered(): boolean {
    return this.#tunnel !== undefined || super.answered
  }

  /** Either side of a tunnel may end before the other. */
  override halfClosed(): void {
    if (this.#tunnel === undefined) super.halfClosed()
  }

  /** Until there is a tunnel nobody else reads the connection, and only reading tells that the client has left. */
  watch(): void {
    this.connection.on('data', this.#hold)
    this.connection.once('end', this.#leave)
  }

  tunnelled(): void {
    const socket = this.connection
    socket.off('data', this.#hold)
    socket.off('end', this.#leave)
    socket.pause()
    this.#response.detachSocket(socket)
    if (this.#advanced > 0) socket.unshift(Buffer.concat(this.#advance))
    this.#advance = []
    this.#tunnel = { read: socket.bytesRead, written: socket.bytesWritten }
  }

  /** The sidecar stops: a tunnel is closed towards the client, what was sent before still arriving. */
  farewell(): void {
    if (this.#tunnel !== undefined) this.connection.destroySoon()
  }

  override clientGone(): void {
    const { connection } = this
    if (this.#tunnel === undefined) super.clientGone()
    else {
      this.settle('complete', {
        status: 101,
        requestBytes: connection.bytesRead - this.#tunnel.read,
        responseBytes: connection.bytesWritten - this.#tunnel.written,
      })
    }
  }

  readonly #hold = (chunk: Buffer): void => {
    this.#advance.push(chunk)
    this.#advanced += chunk.length
    if (this.#advanced > LARGEST_ADVANCE) this.connection.destroy()
  }

  readonly #leave = (): void => {
    if (!this.answered) this.connection.destroy()
  }
}
