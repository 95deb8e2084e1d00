import type { Socket } from 'node:net'
import type { RenderedHead, ResponseFraming } from '../../http1/response-writer.ts'
import { finishSoon, type Message, writeAtTurnEnd, writeSpent } from '../../system/write-soon.ts'

/** A piece of the body up to this size (bytes) is sent as text: a first piece with the head, others with their chunk lines. */
const LARGEST_TEXT = 8 * 1024

const LAST_CHUNK = '0\r\n\r\n'

/**
 * A response in pieces. Its head is held until the end of the turn, so that body bytes of the same turn are sent with it: one write
 * costs much less than two.
 */
export class Http1Response implements Message {
  readonly socket: Socket
  /** The head and the body bytes that are held with it. */
  text: string
  onWritten: Message['onWritten'] = undefined
  waits = false
  next: Message | undefined = undefined
  readonly #framing: ResponseFraming
  /** Bytes of the body so far. */
  #bytes = 0

  constructor(socket: Socket, head: RenderedHead) {
    this.socket = socket
    this.text = head.text
    this.#framing = head.framing
    writeAtTurnEnd(this)
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

  /** @param onFlushed called when the kernel has taken the whole response, or with an error */
  end(last: Buffer | undefined, onFlushed: (error?: Error | null) => void): void {
    if (last !== undefined && last.length <= LARGEST_TEXT) {
      if (last.length > 0 && this.#framing !== 'none') this.text += this.#asText(last)
    } else if (last !== undefined) this.write(last)
    if (this.#framing === 'chunked') this.text += LAST_CHUNK
    this.onWritten = onFlushed
    finishSoon(this)
  }

  /** Writes what is held. */
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
