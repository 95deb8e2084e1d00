import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { TurnBudget } from './turn-budget.ts'

/** The most bytes that are let through at once: 400 frames of HTTP/2, or 180 records of TLS. */
const PIECE = 4 * 1024

/** A byte of a frame or of a record without content takes the processor as long as so many bytes of a body. */
const WORK_OF_BYTE = 64

const NOTHING = Buffer.alloc(0)

/**
 * The TCP connection of a client without a grant, as TLS gets it: what the client sends is let through in small pieces, by its turns. TLS
 * and `node:http2` serve all that they get within one turn of the event loop, and what is cheap to send may be dear to read: records and
 * frames of one byte. Reading through a stream of JavaScript costs about a tenth more than TLS on the socket itself, so a client
 * with a grant is spared it.
 */
export class Sluice extends Duplex {
  readonly #wire: Socket
  readonly #turns: TurnBudget
  readonly #onHeld: (change: number) => void
  /** Bytes that wait for a turn. Meanwhile the connection is not read. */
  #waiting: Buffer = NOTHING
  #ended = false

  /** @param onHeld called with the change of the number of bytes that wait */
  constructor(wire: Socket, turns: TurnBudget, onHeld: (change: number) => void) {
    super()
    this.#wire = wire
    this.#turns = turns
    this.#onHeld = onHeld
    wire.on('data', this.#receive)
    wire.once('end', () => {
      this.#ended = true
      this.#letThrough()
    })
    wire.once('error', (error) => this.destroy(error))
    // What came before the end may wait for its turn still.
    wire.once('close', () => {
      if (this.#ended && !this.readableEnded) this.once('end', () => this.destroy())
      else this.destroy()
    })
  }

  override _read(): void {
    if (this.#waiting.length === 0) this.#wire.resume()
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#wire.write(bytes, done)
  }

  override _writev(
    pieces: readonly { readonly chunk: Buffer }[],
    done: (error?: Error | null) => void,
  ): void {
    this.#wire.write(Buffer.concat(pieces.map(({ chunk }) => chunk)), done)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#wire.end(done)
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#hold(NOTHING)
    this.#wire.destroy()
    done(error)
  }

  readonly #receive = (bytes: Buffer): void => {
    this.#hold(bytes)
    this.#wire.pause()
    this.#letThrough()
  }

  /** Lets the next piece through, now or in a later turn, and then those after it. */
  readonly #letThrough = (): void => {
    const size = Math.min(this.#waiting.length, PIECE)
    if (size === 0) {
      if (this.#ended) this.push(null)
      return
    }
    this.#turns.run(
      WORK_OF_BYTE * size,
      () => this.#pass(size),
      () => this.destroyed,
    )
  }

  #pass(size: number): void {
    const piece = this.#waiting.subarray(0, size)
    this.#hold(this.#waiting.subarray(size))
    const mayGoOn = this.push(piece)
    if (this.#waiting.length > 0 || this.#ended) this.#letThrough()
    else if (mayGoOn) this.#wire.resume()
  }

  #hold(bytes: Buffer): void {
    this.#onHeld(bytes.length - this.#waiting.length)
    this.#waiting = bytes
  }
}
