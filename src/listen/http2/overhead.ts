import type { Socket } from 'node:net'
import type { RequestHead } from '../../http/exchange.ts'
import { STREAM_WINDOW } from '../../memory/costs.ts'

/**
 * How many bytes of frames that carry next to nothing a session may send within `OVERUSE_SPAN`: 32,000 DATA frames of one byte. Each costs nghttp2 and
 * Node more than a microsecond, before the turn of its client is asked.
 */
const MOST = 256 * 1024

/**
 * An upload that is refused wastes what was under way: up to the window of the stream. Neither Node nor nghttp2 tells in which frames it came, so it counts
 * as large ones. So many may within `OVERUSE_SPAN`, as many as a client may reset by default: an honest client may try again often.
 */
const MOST_REFUSED = 100

/** What a request needs beside its target and fields (bytes): pseudo-header fields, the heads of its frames, and an empty frame at the end. */
const FRAMING = 128
/** The same for each name and value: its length. */
const LENGTH = 2

/** A byte of a body pays for another one, so DATA frames of nine bytes or more are no overhead: the turn of their client bounds these. */
const OF_BODY = 2

/** A client acknowledges what it reads, with two WINDOW_UPDATE frames (26 bytes) for at least 416 bytes. */
const OF_RESPONSES = 1 / 16

type Counted = Pick<Socket, 'bytesRead' | 'bytesWritten'>

/**
 * What a session has sent beyond its requests and acknowledgements. Node announces neither WINDOW_UPDATE frames nor the frames of a stream that
 * has closed, so what is known to be useful is subtracted from all that arrived.
 */
export class Overhead {
  readonly #socket: Counted
  /** The bytes of bodies that wait to be read. */
  readonly #waiting: () => number
  #useful = 0
  #refused = 0
  #readBefore = 0
  #before = 0

  constructor(socket: Counted, waiting: () => number) {
    this.#socket = socket
    this.#waiting = waiting
    this.newSpan()
  }

  addHead({ target, fields, survey }: RequestHead): void {
    this.#useful += survey.size + target.length + LENGTH * fields.length + FRAMING
  }

  /** Bytes of a body that do not wait any more. */
  addBody(bytes: number): void {
    this.#useful += bytes * OF_BODY
  }

  /** An upload was refused, or reset, before its end. */
  addRefused(): void {
    this.#refused += 1
    if (this.#refused <= MOST_REFUSED) this.#useful += STREAM_WINDOW
  }

  /** What of its bound the session has used in this span. It has exceeded the bound above 1. */
  get share(): number {
    // Most sessions receive less, so nothing is summed up.
    if (this.#socket.bytesRead - this.#readBefore <= MOST / 10) return 0
    return (this.#total - this.#before) / MOST
  }

  newSpan(): void {
    this.#readBefore = this.#socket.bytesRead
    this.#before = this.#total
    this.#refused = 0
  }

  get #total(): number {
    const { bytesRead, bytesWritten } = this.#socket
    return bytesRead - this.#useful - this.#waiting() * OF_BODY - bytesWritten * OF_RESPONSES
  }
}
