import type { Socket } from 'node:net'
import type { RequestHead } from '../../http/exchange.ts'
import { STREAM_WINDOW } from '../../memory/costs.ts'

/**
 * The most bytes of overhead that a session may send within `OVERUSE_SPAN`, such as 32,000 DATA frames of one byte. Each frame costs
 * nghttp2 and Node more than a microsecond before the turn budget of its client applies.
 */
const MOST = 256 * 1024

/**
 * How many refused uploads within `OVERUSE_SPAN` are no overhead. A refused upload wastes its bytes in flight, up to the window of its
 * stream. Neither Node nor nghttp2 tells the frames in which they came, so the whole window counts as useful. The number is that of
 * `maxResets`: an honest client may try again as often.
 */
const MOST_REFUSED = 100

/** The bytes that a request needs beside its target and fields: pseudo-header fields, frame headers, and an empty last frame. */
const FRAMING = 128
/** The bytes that state the length of one field name or field value. */
const LENGTH = 2

/** The useful bytes for each body byte. DATA frames of nine bytes or more are no overhead: the turn budget of their client bounds them. */
const OF_BODY = 2

/** The useful bytes for each response byte: a client acknowledges at least 416 bytes with two WINDOW_UPDATE frames (26 bytes). */
const OF_RESPONSES = 1 / 16

type Counted = Pick<Socket, 'bytesRead' | 'bytesWritten'>

/**
 * Measures the bytes that a session sends beyond its requests and acknowledgements. Node announces neither WINDOW_UPDATE frames nor the
 * frames of a closed stream, so the bytes that are known to be useful are subtracted from all received bytes.
 */
export class Overhead {
  readonly #socket: Counted
  /** The body bytes that wait to be read. */
  readonly #waiting: () => number
  #useful = 0
  #refused = 0
  /** The received bytes when the span began. */
  #readBefore = 0
  /** `#total` when the span began. */
  #totalBefore = 0

  constructor(socket: Counted, waiting: () => number) {
    this.#socket = socket
    this.#waiting = waiting
    this.newSpan()
  }

  addHead({ target, fields, survey }: RequestHead): void {
    this.#useful += survey.size + target.length + LENGTH * fields.length + FRAMING
  }

  /** Call this when body bytes were read or dropped. */
  addBody(bytes: number): void {
    this.#useful += bytes * OF_BODY
  }

  /** Call this when an upload was refused or reset before its end. */
  addRefused(): void {
    this.#refused += 1
    if (this.#refused <= MOST_REFUSED) this.#useful += STREAM_WINDOW
  }

  /** The part of its bound that the session has used in this span. Above 1 the session has exceeded the bound. */
  get share(): number {
    // Most sessions receive less, so the sum is not computed.
    if (this.#socket.bytesRead - this.#readBefore <= MOST / 10) return 0
    return (this.#total - this.#totalBefore) / MOST
  }

  newSpan(): void {
    this.#readBefore = this.#socket.bytesRead
    this.#totalBefore = this.#total
    this.#refused = 0
  }

  get #total(): number {
    const { bytesRead, bytesWritten } = this.#socket
    return bytesRead - this.#useful - this.#waiting() * OF_BODY - bytesWritten * OF_RESPONSES
  }
}
