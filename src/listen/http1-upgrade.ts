import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { UpgradeExchange } from '../http/exchange.ts'
import { Http1Exchange } from './http1-exchange.ts'

/** An upgrade. Refused, it is answered like any request and the connection closed; otherwise it becomes a tunnel. */
export class Http1UpgradeExchange extends Http1Exchange implements UpgradeExchange {
  readonly connection: Socket
  readonly early: Buffer
  /** Byte counts of the connection when the tunnel began. */
  #tunnel: { readonly read: number; readonly written: number } | undefined

  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    facts: { secure: boolean; localPort: number },
    early: Buffer,
  ) {
    super(req, res, { ...facts, upgrade: req.method !== 'CONNECT' })
    const socket = req.socket
    this.connection = socket
    this.early = early
    // The parser has left this connection, so nothing behind this request can be read as another one.
    this.closeAfter()
    res.assignSocket(socket)
    res.once('finish', () => {
      res.detachSocket(socket)
      socket.destroySoon()
    })
  }

  tunnelled(): void {
    this.#tunnel = { read: this.connection.bytesRead, written: this.connection.bytesWritten }
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
}
