import type { Socket } from 'node:net'
import { UntimedStream } from '../system/untimed-stream.ts'

/**
 * One end of a tunnel: a stream in front of a socket, which `http-proxy-3` takes for the socket. Until `join` it reads nothing, and its end
 * does not end the socket. From then on it relays bytes, half-close and close both ways. Each direction holds at most one piece that the
 * other side does not take yet, so a slow reader stalls the writer.
 */
export class TunnelEnd extends UntimedStream {
  readonly #socket: Socket
  readonly #sends: boolean
  readonly #onPiece: (() => void) | undefined
  #joined = false
  /** The callback of a write that waits until the socket takes more. */
  #written: (() => void) | undefined

  /**
   * @param before whether what is written before `join` is sent or dropped
   * @param onPiece called when a piece is written to the socket, and when the kernel has taken it
   */
  constructor(socket: Socket, before: 'sends' | 'drops', onPiece?: () => void) {
    // With a mark of one byte, a piece that is not taken stops the next one.
    super({ allowHalfOpen: socket.allowHalfOpen, decodeStrings: false, readableHighWaterMark: 1 })
    this.#socket = socket
    this.#sends = before === 'sends'
    this.#onPiece = onPiece
    // The other end hears of a failure by `close`. Without a listener the failure would end the process.
    this.on('error', () => {})
  }

  /** Joins the socket, which has to be paused. `early`: the pieces that were read from it before. */
  join(...early: readonly Buffer[]): void {
    const socket = this.#socket
    this.#joined = true
    socket.on('drain', this.#proceed)
    socket.once('close', () => {
      this.#proceed()
      // After an orderly end, the last bytes are still to be read.
      if (!socket.readableEnded) this.destroy()
    })
    for (const bytes of early) if (bytes.length > 0) this.push(bytes)
    if (socket.readableEnded) this.push(null)
    else {
      socket.on('data', (bytes: Buffer) => {
        if (!this.push(bytes)) socket.pause()
      })
      socket.once('end', () => this.push(null))
      socket.resume()
    }
  }

  readonly #proceed = (): void => {
    const written = this.#written
    this.#written = undefined
    written?.()
  }

  override _read(): void {
    if (this.#joined) this.#socket.resume()
  }

  /** Text is a head, which is Latin-1 (RFC 9110 §5.5). */
  override _write(chunk: Buffer | string, _encoding: BufferEncoding, done: () => void): void {
    const socket = this.#socket
    const sends = socket.writable && (this.#joined || this.#sends)
    if (!sends || socket.write(chunk, 'latin1', this.#onPiece) || !this.#joined) done()
    else this.#written = done
    this.#onPiece?.()
  }

  override _final(done: () => void): void {
    if (this.#joined && !this.#socket.destroyed) this.#socket.end(() => done())
    else done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (this.#joined) this.#socket.destroySoon()
    done(error)
  }

  /** Ends both directions when everything is written. */
  destroySoon(): void {
    this.end(() => this.destroy())
  }

  setNoDelay(on?: boolean): this {
    this.#socket.setNoDelay(on)
    return this
  }

  setKeepAlive(on?: boolean, delay?: number): this {
    this.#socket.setKeepAlive(on, delay)
    return this
  }
}
