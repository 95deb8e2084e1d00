import type { Socket } from 'node:net'
import type { UpgradeExchange } from '../../http/exchange.ts'
import type { Http1RequestHead } from '../../http1/request-head.ts'
import { type Http1Carrier, Http1Exchange } from './exchange.ts'

/** What a client may send ahead of the answer to its upgrade (bytes); WebSocket clients send nothing. */
const LARGEST_ADVANCE = 64 * 1024

/** An upgrade. Refused, it is answered like any request and the connection closed; otherwise it becomes a tunnel. */
export class Http1UpgradeExchange extends Http1Exchange implements UpgradeExchange {
  readonly connection: Socket
  readonly #onTunnel: () => void
  /** Byte counts of the connection when the tunnel began. */
  #tunnel: { readonly read: number; readonly written: number } | undefined
  /** What the client has sent behind the head. */
  #advance: Buffer[]
  #advanced: number

  /** `early` is what came behind the head; `onTunnel` is told when the connection is HTTP's no more. */
  constructor(carrier: Http1Carrier, request: Http1RequestHead, early: Buffer, onTunnel: () => void) {
    super(carrier, request, undefined)
    this.connection = carrier.socket
    this.#advance = [early]
    this.#advanced = early.length
    this.#onTunnel = onTunnel
    // What follows may be of another protocol, so nothing behind this request can be read as another one.
    this.closeAfter()
  }

  /** A tunnel is past answering, although no response of ours has begun it. */
  override get answered(): boolean {
    return this.#tunnel !== undefined || super.answered
  }

  /**
   * Until there is a tunnel nothing else reads the connection, and only reading tells that the client has reset it. One that
   * has closed its sending side may wait for its answer; if it is gone, the device's deadlines end its upgrade.
   */
  watch(): void {
    this.connection.on('data', this.#hold)
    this.connection.resume()
  }

  tunnelled(): Buffer {
    const socket = this.connection
    socket.off('data', this.#hold)
    socket.pause()
    this.#onTunnel()
    this.#tunnel = { read: socket.bytesRead, written: socket.bytesWritten }
    const advance = Buffer.concat(this.#advance)
    this.#advance = []
    return advance
  }

  /** The sidecar stops: a tunnel is closed towards the client, what was sent before still arriving. */
  override farewell(): void {
    if (this.#tunnel !== undefined) this.connection.destroySoon()
  }

  override clientGone(): void {
    const { connection } = this
    const tunnel = this.#tunnel
    if (tunnel === undefined) super.clientGone()
    else {
      const { bytesRead, bytesWritten } = connection
      this.settle('complete', 101, bytesRead - tunnel.read, bytesWritten - tunnel.written)
    }
  }

  readonly #hold = (chunk: Buffer): void => {
    this.#advance.push(chunk)
    this.#advanced += chunk.length
    if (this.#advanced > LARGEST_ADVANCE) this.connection.destroy()
  }
}
