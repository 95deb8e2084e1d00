import type { Socket } from 'node:net'
import type { UpgradeExchange } from '../../http/exchange.ts'
import type { Http1RequestHead } from '../../http1/request-head.ts'
import { Http1Exchange, type Http1Transport } from './http1-exchange.ts'

/** The most bytes that a client may send before the response to its upgrade. WebSocket clients send none. */
const LARGEST_EARLY = 64 * 1024

/** An upgrade request. It becomes a tunnel, or gets a response like any other request. Then the connection closes. */
export class Http1UpgradeExchange extends Http1Exchange implements UpgradeExchange {
  readonly connection: Socket
  readonly #onTunnel: () => void
  /** The byte counts of the connection when the tunnel began; undefined before that. */
  #tunnel: { readonly read: number; readonly written: number } | undefined
  /** The bytes of the client between the head and the tunnel. */
  #early: Buffer[]
  #earlySize: number

  /** `early`: the bytes that came with the head. `onTunnel`: called when the connection leaves HTTP. */
  constructor(transport: Http1Transport, request: Http1RequestHead, early: Buffer, onTunnel: () => void) {
    super(transport, request, undefined)
    this.connection = transport.socket
    this.#early = [early]
    this.#earlySize = early.length
    this.#onTunnel = onTunnel
  }

  /** A tunnel counts as answered, although this exchange sends no response for it. */
  override get answered(): boolean {
    return this.#tunnel !== undefined || super.answered
  }

  /**
   * Reads the connection until the tunnel begins, because only a read detects a reset by the client. A half-closed client may still wait
   * for its response. If it has left, the device's deadlines end its upgrade.
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
    const early = Buffer.concat(this.#early)
    this.#early = []
    return early
  }

  /** Closes a tunnel when its queued bytes are sent to the client. */
  override serverStopping(): void {
    if (this.#tunnel !== undefined) this.connection.destroySoon()
  }

  override cut(): void {
    if (!this.ended) this.#measure()
    super.cut()
  }

  override clientGone(): void {
    if (this.#tunnel === undefined) super.clientGone()
    else {
      this.#measure()
      this.settle('complete')
    }
  }

  /** Writes the byte counts of the tunnel into the exchange, for the record. */
  #measure(): void {
    const tunnel = this.#tunnel
    if (tunnel === undefined) return
    const { bytesRead, bytesWritten } = this.connection
    this.status = 101
    this.requestBytes = bytesRead - tunnel.read
    this.responseBytes = bytesWritten - tunnel.written
  }

  readonly #hold = (chunk: Buffer): void => {
    this.#early.push(chunk)
    this.#earlySize += chunk.length
    if (this.#earlySize > LARGEST_EARLY) this.connection.destroy()
  }
}
