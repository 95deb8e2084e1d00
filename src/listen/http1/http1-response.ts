import type { Socket } from 'node:net'
import type { RenderedHead, ResponseFraming } from '../../http1/response-writer.ts'
import { finishSoon, type Message, writeAtTurnEnd, writeSpent } from '../../system/write-soon.ts'

/** A body piece up to this size (bytes) is written as text: the first piece together with the head, other pieces with their chunk lines. */
const LARGEST_TEXT = 8 * 1024

const LAST_CHUNK = '0\r\n\r\n'

/**
 * A response in pieces. The head is held until the end of the turn, and body bytes of the same turn are written with it: one write costs
 * much less than two.
 */
export class Http1Response implements Message {
  readonly socket: Socket
  /** The held text: the head, and body bytes after it. */
  text: string
  onWritten: Message['onWritten'] = undefined
  waits = false
  next: Message | undefined = undefined
  readonly #framing: ResponseFraming
  /** The number of body bytes so far. */
  #bytes = 0

  constructor(socket: Socket, head: RenderedHead) {
    this.socket = socket
    this.text = head.text
    this.#framing = head.framing
    writeAtTurnEnd(this)
  }

  /** Whether the body with `size` more bytes fits the `Content-Length` in the head; with `last`, whether it then is exactly that long. */
  fits(size: number, last: boolean): boolean {
    if (typeof this.#framing !== 'number') return true
    return last ? this.#bytes + size === this.#framing : this.#bytes + size <= this.#framing
  }

  /** Writes a piece of the body. False if the client reads more slowly than the sidecar writes (back-pressure). */
  write(piece: Buffer): boolean {
    if (piece.length === 0 || this.#framing === 'none') return true
    const first = this.#bytes === 0
    this.#bytes += piece.length
    if (this.text === '') return this.#send(piece)
    if (first && piece.length <= LARGEST_TEXT) {
      this.text += this.#asText(piece)
      return true
    }
    this.socket.cork()
    this.flush()
    const taken = this.#send(piece)
    this.socket.uncork()
    return taken
  }

  /**
   * Writes the end of the response.
   *
   * @param onFlushed called when the kernel has taken the whole response, or with an error
   */
  end(last: Buffer | undefined, onFlushed: (error?: Error | null) => void): void {
    if (last !== undefined && last.length <= LARGEST_TEXT) {
      if (last.length > 0 && this.#framing !== 'none') this.text += this.#asText(last)
    } else if (last !== undefined) this.write(last)
    if (this.#framing === 'chunked') this.text += LAST_CHUNK
    this.onWritten = onFlushed
    finishSoon(this)
  }

  /** Writes the held text. */
  flush(): void {
    if (this.text === '') return
    this.socket.write(this.text, 'latin1')
    this.text = ''
  }

  #asText(piece: Buffer): string {
    const text = piece.toString('latin1')
    return this.#framing === 'chunked' ? `${piece.length.toString(16)}\r\n${text}\r\n` : text
  }

  #send(piece: Buffer): boolean {
    const { socket } = this
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
