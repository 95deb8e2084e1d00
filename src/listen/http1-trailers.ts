import { COLON, CR, isText, isToken, LF } from './http1-bytes.ts'

/** Nobody needs trailers here; more of them (bytes) are an attack. */
const LONGEST = 8 * 1024

/** Reads a trailer section (RFC 9112 §7.1.2): fields, each ended by CRLF, and an empty line behind them. */
export class Trailers {
  #part: 'start' | 'name' | 'value' | 'line-end' | 'end' | 'done' = 'start'
  #count = 0

  get done(): boolean {
    return this.#part === 'done'
  }

  /** Reads on from a position; gives that behind what belongs to the section, or -1 where it is none. */
  read(bytes: Buffer, from: number): number {
    let at = from
    while (at < bytes.length && !this.done) if (!this.#reads(bytes[at++] ?? 0)) return -1
    return at
  }

  #reads(byte: number): boolean {
    this.#count += 1
    switch (this.#part) {
      case 'start':
        this.#part = byte === CR ? 'end' : 'name'
        return byte === CR || isToken(byte)
      case 'name':
        if (byte === COLON) this.#part = 'value'
        return (byte === COLON || isToken(byte)) && this.#count <= LONGEST
      case 'value':
        if (byte === CR) this.#part = 'line-end'
        return byte === CR || (isText(byte) && this.#count <= LONGEST)
      case 'line-end':
        this.#part = 'start'
        return byte === LF
      default:
        this.#part = 'done'
        return byte === LF
    }
  }
}
