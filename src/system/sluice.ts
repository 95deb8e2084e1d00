import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { TurnBudget } from './turn-budget.ts'

/** The most bytes that pass at once: about 400 HTTP/2 frames, or 180 TLS records. */
const PIECE = 4 * 1024

/** The work of one byte, in bytes of a body: a byte of an empty HTTP/2 frame or TLS record costs the processor as much as 64 of a body. */
const WORK_OF_BYTE = 64

const NOTHING = Buffer.alloc(0)

interface SluiceEvents {
  /** Called with the change in the number of waiting bytes; it is negative if there are fewer. */
  readonly onHeld: (change: number) => void
  /** Whether the client has a grant by now. Then a byte counts like a byte of a body. */
  readonly isKnown: () => boolean
}

/**
 * The TCP connection of a client without a grant, as TLS reads it: the client's bytes pass in small pieces, by its turn budget. TLS and
 * `node:http2` process all their input within one turn of the event loop, and records or frames of one byte are cheap to send but
 * expensive to read. This stream costs about a tenth more than TLS on the socket itself, so clients with a grant do not get one.
 */
export class Sluice extends Duplex {
  readonly #wire: Socket
  readonly #turns: TurnBudget
  readonly #events: SluiceEvents
  /** Received bytes that wait for a turn, or for their reader. Until they have passed, the connection is not read. */
  #waiting: Buffer = NOTHING
  #ended = false
  /** A piece waits for its turn. */
  #inTurn = false

  constructor(wire: Socket, turns: TurnBudget, events: SluiceEvents) {
    // The buffer of the stream is small, because `onHeld` does not report the bytes in it.
    super({ readableHighWaterMark: PIECE })
    this.#wire = wire
    this.#turns = turns
    this.#events = events
    wire.on('data', this.#receive)
    wire.once('end', () => {
      this.#ended = true
      this.#letThrough()
    })
    wire.once('error', (error) => this.destroy(error))
    // Bytes that arrived before the end may still wait for a turn.
    wire.once('close', () => {
      if (this.#ended && !this.readableEnded) this.once('end', () => this.destroy())
      else this.destroy()
    })
  }

  override _read(): void {
    if (this.#waiting.length > 0) this.#letThrough()
    else if (!this.#ended) this.#wire.resume()
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

  /** Passes the next piece, now or in a later turn, and then the pieces behind it. */
  readonly #letThrough = (): void => {
    if (this.#inTurn) return
    const size = Math.min(this.#waiting.length, PIECE)
    if (size === 0) {
      if (this.#ended) this.push(null)
      return
    }
    this.#inTurn = true
    this.#turns.run(
      (this.#events.isKnown() ? 1 : WORK_OF_BYTE) * size,
      () => this.#pass(size),
      () => this.destroyed,
    )
  }

  #pass(size: number): void {
    this.#inTurn = false
    const piece = this.#waiting.subarray(0, size)
    this.#hold(this.#waiting.subarray(size))
    // If the reader has paused, `_read` continues.
    if (!this.push(piece) && !this.#isLast) return
    if (this.#waiting.length > 0 || this.#ended) this.#letThrough()
    else this.#wire.resume()
  }

  /** Only the end of the stream is left. A paused reader makes no `_read` for it. */
  get #isLast(): boolean {
    return this.#waiting.length === 0 && this.#ended
  }

  #hold(bytes: Buffer): void {
    this.#events.onHeld(bytes.length - this.#waiting.length)
    this.#waiting = bytes
  }
}
