import { CR, DEL, isToken, LF, SP } from './http1-bytes.ts'

/** What stands behind the target; in place of the zero there may be a one. */
const VERSION = Buffer.from('HTTP/1.0\r\n')
const MINOR_VERSION = VERSION.indexOf('0')
const ONE = 0x31

type Part = 'before' | 'empty-line' | 'method' | 'target' | 'version' | 'done'

/**
 * Reads request lines byte by byte, as RFC 9112 §3 writes them: a token, one space, visible bytes, one space, HTTP/1.0
 * or HTTP/1.1, CRLF. Node's parser takes several spaces for one, and other protocols for HTTP.
 */
export class RequestLine {
  #part: Part = 'before'
  #count = 0

  /** Not a byte has been read. */
  get fresh(): boolean {
    return this.#part === 'before'
  }

  get done(): boolean {
    return this.#part === 'done'
  }

  again(): void {
    this.#part = 'before'
  }

  /** Reads on; gives the position behind what belongs to the line, or -1 where it is none. */
  read(chunk: Buffer, from: number): number {
    let part = this.#part
    let count = this.#count
    let at = from
    while (part !== 'done' && at < chunk.length) {
      const byte = chunk[at++] ?? 0
      count += 1
      if (part === 'version') {
        if (byte !== VERSION[count - 1] && (byte !== ONE || count - 1 !== MINOR_VERSION)) return -1
        if (count === VERSION.length) part = 'done'
      } else if (part === 'empty-line') {
        if (byte !== LF) return -1
        part = 'method'
        count = 0
      } else if (byte === SP) {
        if (count === 1) return -1
        part = part === 'target' ? 'version' : 'target'
        count = 0
      } else if (part === 'target') {
        if (byte < SP || byte === DEL) return -1
      } else if (isToken(byte)) {
        if (part === 'before') part = 'method'
      } else if (byte === CR && part === 'before') part = 'empty-line'
      else return -1
    }
    this.#part = part
    this.#count = count
    return at
  }
}
