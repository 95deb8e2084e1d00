import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { TurnBudget } from './turn-budget.ts'

/** The most bytes that are let through at once: 400 frames of HTTP/2, or 180 records of TLS. */
const PIECE = 4 * 1024

/** A byte of a frame or of a record without content takes the processor as long as so many bytes of a body. */
const WORK_OF_BYTE = 64

const NOTHING = Buffer.alloc(0)

interface SluiceEvents {
  /** The number of bytes that wait has changed, by a negative number if there are fewer. */
  readonly onHeld: (change: number) => void
  /** Whether the client has a grant by now: then a byte takes as much as one of a body. */
  readonly isKnown: () => boolean
}

/**
 * The TCP connection of a client without a grant, as TLS gets it: what the client sends is let through in small pieces, by its turns. TLS
 * and `node:http2` serve all that they get within one turn of the event loop, and what is cheap to send may be dear to read: records and
 * frames of one byte. Reading through a stream of JavaScript costs about a tenth more than TLS on the socket itself, so a client
 * with a grant is spared it.
 */
export class Sluice extends Duplex {
  readonly #wire: Socket
  readonly #turns: TurnBudget
  readonly #events: SluiceEvents
  /** Bytes that wait for a turn, or for their reader. Meanwhile the connection is not read. */
  #waiting: Buffer = NOTHING
  #ended = false
  /** A piece waits for its turn. */
  #inTurn = false

  constructor(wire: Socket, turns: TurnBudget, events: SluiceEvents) {
    // What a paused reader leaves in the stream is not told by `onHeld`.
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
    // What came before the end may wait for its turn still.
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

  /** Lets the next piece through, now or in a later turn, and then those after it. */
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
    // If the reader has paused, `_read` goes on.
    if (!this.push(piece) && !this.#isLast) return
    if (this.#waiting.length > 0 || this.#ended) this.#letThrough()
    else this.#wire.resume()
  }

  /** Only the end is left, for which `_read` is not called. */
  get #isLast(): boolean {
    return this.#waiting.length === 0 && this.#ended
  }

  #hold(bytes: Buffer): void {
    this.#events.onHeld(bytes.length - this.#waiting.length)
    this.#waiting = bytes
  }
}
