import type { Socket } from 'node:net'
import type { RenderedHead, ResponseFraming } from '../../http1/response-writer.ts'
import { writeSoon, writeSpent } from '../../system/write-soon.ts'

/** A piece of the body up to this size (bytes) is sent as text: a first piece with the head, others with their chunk lines. */
const LARGEST_TEXT = 8 * 1024

const LAST_CHUNK = '0\r\n\r\n'

const RESOLVED = Promise.resolve()

/**
 * A response in pieces. Its head is held for one microtask, so that body bytes of the same turn are sent with it: one write costs
 * much less than two. A head without such bytes is sent right after.
 */
export class Http1Response {
  readonly #socket: Socket
  readonly #framing: ResponseFraming
  /** Called when the kernel has taken the whole response, or with an error. All responses of a connection share this function. */
  readonly #onFlushed: (error?: Error | null) => void
  /** The head and the body bytes that are held with it. */
  #held: string
  /** Bytes of the body so far. */
  #bytes = 0

  constructor(socket: Socket, head: RenderedHead, onFlushed: (error?: Error | null) => void) {
    this.#socket = socket
    this.#framing = head.framing
    this.#onFlushed = onFlushed
    this.#held = head.text
    // `queueMicrotask` would create an asynchronous resource for every call.
    RESOLVED.then(() => this.flush())
  }

  /** Whether the body fits the length in the head with `size` more bytes, which may be its last ones. */
  fits(size: number, last: boolean): boolean {
    if (typeof this.#framing !== 'number') return true
    return last ? this.#bytes + size === this.#framing : this.#bytes + size <= this.#framing
  }

  /** False if the client reads more slowly than the sidecar writes. */
  write(piece: Buffer): boolean {
    if (piece.length === 0 || this.#framing === 'none') return true
    const first = this.#bytes === 0
    this.#bytes += piece.length
    if (this.#held === '') return this.#send(piece)
    if (first && piece.length <= LARGEST_TEXT) {
      this.#held += this.#asText(piece)
      return true
    }
    const socket = this.#socket
    socket.cork()
    this.flush()
    const taken = this.#send(piece)
    socket.uncork()
    return taken
  }

  end(last: Buffer | undefined): void {
    if (last !== undefined && last.length <= LARGEST_TEXT) {
      if (last.length > 0 && this.#framing !== 'none') this.#held += this.#asText(last)
    } else if (last !== undefined) this.write(last)
    const text = this.#framing === 'chunked' ? this.#held + LAST_CHUNK : this.#held
    this.#held = ''
    if (text !== '') writeSoon(this.#socket, text, this.#onFlushed)
    else if (this.#socket.writableLength > 0) this.#socket.write('', 'latin1', this.#onFlushed)
    else RESOLVED.then(() => this.#onFlushed())
  }

  /** Writes what is held. */
  flush(): void {
    if (this.#held === '') return
    this.#socket.write(this.#held, 'latin1')
    this.#held = ''
  }

  #asText(piece: Buffer): string {
    const text = piece.toString('latin1')
    return this.#framing === 'chunked' ? `${piece.length.toString(16)}\r\n${text}\r\n` : text
  }

  #send(piece: Buffer): boolean {
    const socket = this.#socket
    if (this.#framing !== 'chunked') return writeSpent(socket, piece)
    if (piece.length <= LARGEST_TEXT) return socket.write(this.#asText(piece), 'latin1')
    socket.cork()
    socket.write(`${piece.length.toString(16)}\r\n`, 'latin1')
    writeSpent(socket, piece)
    const taken = socket.write('\r\n', 'latin1')
    socket.uncork()
    return taken
  }
}
