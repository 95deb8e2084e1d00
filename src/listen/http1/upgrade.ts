import type { Socket } from 'node:net'
import type { UpgradeExchange } from '../../http/exchange.ts'
import type { Http1RequestHead } from '../../http1/request-head.ts'
import { type Http1Carrier, Http1Exchange } from './exchange.ts'

/** How many bytes a client may send before the response to its upgrade. WebSocket clients send none. */
const LARGEST_ADVANCE = 64 * 1024

/** An upgrade. Refused, it is answered like any request and the connection closed; otherwise it becomes a tunnel. */
export class Http1UpgradeExchange extends Http1Exchange implements UpgradeExchange {
  readonly connection: Socket
  readonly #onTunnel: () => void
  /** Byte counts of the connection when the tunnel began. */
  #tunnel: { readonly read: number; readonly written: number } | undefined
  /** The bytes that the client sent after the head. */
  #advance: Buffer[]
  #advanced: number

  /** `early`: the bytes that came with the head. `onTunnel` is called when the connection leaves HTTP. */
  constructor(carrier: Http1Carrier, request: Http1RequestHead, early: Buffer, onTunnel: () => void) {
    super(carrier, request, undefined)
    this.connection = carrier.socket
    this.#advance = [early]
    this.#advanced = early.length
    this.#onTunnel = onTunnel
    // The next bytes may be of another protocol, so they are never read as a request.
    this.closeAfter()
  }

  /** A tunnel counts as answered, although no response of the exchange began it. */
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
  override serverStopping(): void {
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
