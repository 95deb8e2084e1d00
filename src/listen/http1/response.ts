import type { Socket } from 'node:net'
import type { RenderedHead, ResponseFraming } from '../../http1/response-writer.ts'
import { writeSpent } from '../../system/spent-bytes.ts'
import { writeSoon } from '../../system/write-soon.ts'

/** A first piece of the body up to this size (bytes) leaves as text with the head; other pieces with their chunk lines. */
const LARGEST_TEXT = 8 * 1024

const LAST_CHUNK = '0\r\n\r\n'

const SOON = Promise.resolve()

/**
 * A response in pieces. Its head waits for a microtask, so that body bytes of the same turn leave with it: one write costs much
 * less than two. The head of a stream without such bytes still leaves at once.
 */
export class Http1Response {
  readonly #socket: Socket
  readonly #framing: ResponseFraming
  /** Called when the kernel has the whole response, or with the error. It is the same function for all responses. */
  readonly #onFlushed: (error?: Error | null) => void
  /** The head, and the body bytes that wait with it. */
  #kept: string
  /** Bytes of the body so far. */
  #bytes = 0

  constructor(socket: Socket, head: RenderedHead, onFlushed: (error?: Error | null) => void) {
    this.#socket = socket
    this.#framing = head.framing
    this.#onFlushed = onFlushed
    this.#kept = head.text
    // `queueMicrotask` would make an asynchronous resource of every call.
    SOON.then(() => this.#letGo())
  }

  /** Whether `size` more bytes would exceed the length in the head. */
  exceeds(size: number): boolean {
    return typeof this.#framing === 'number' && this.#bytes + size > this.#framing
  }

  /** Whether the body would fall short of the length in the head if it ended after `size` more bytes. */
  fallsShort(size: number): boolean {
    return typeof this.#framing === 'number' && this.#bytes + size < this.#framing
  }

  /** False if the client reads more slowly than the sidecar writes. */
  write(piece: Buffer): boolean {
    if (piece.length === 0 || this.#framing === 'none') return true
    const first = this.#bytes === 0
    this.#bytes += piece.length
    if (this.#kept === '') return this.#send(piece)
    if (first && piece.length <= LARGEST_TEXT) {
      this.#kept += this.#asText(piece)
      return true
    }
    const socket = this.#socket
    socket.cork()
    this.#letGo()
    const taken = this.#send(piece)
    socket.uncork()
    return taken
  }

  end(last: Buffer | undefined): void {
    if (last !== undefined && last.length <= LARGEST_TEXT) {
      if (last.length > 0 && this.#framing !== 'none') this.#kept += this.#asText(last)
    } else if (last !== undefined) this.write(last)
    const text = this.#framing === 'chunked' ? this.#kept + LAST_CHUNK : this.#kept
    this.#kept = ''
    if (text !== '') writeSoon(this.#socket, text, this.#onFlushed)
    else if (this.#socket.writableLength > 0) this.#socket.write('', 'latin1', this.#onFlushed)
    else SOON.then(() => this.#onFlushed())
  }

  #letGo(): void {
    if (this.#kept === '') return
    this.#socket.write(this.#kept, 'latin1')
    this.#kept = ''
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
