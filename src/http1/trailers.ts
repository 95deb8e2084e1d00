import { COLON, CR, LF, TEXT, TOKEN } from './bytes.ts'

/** Reads a trailer section (RFC 9112 §7.1.2): fields, each ended by CRLF, then an empty line. */
export class Trailers {
  readonly #longest: number
  #part: 'start' | 'name' | 'value' | 'line-end' | 'end' | 'done' = 'start'
  #count = 0

  /** @param longest the largest section (bytes) */
  constructor(longest: number) {
    this.#longest = longest
  }

  /** The section is larger than `longest`. */
  get tooLong(): boolean {
    return this.#count > this.#longest
  }

  get done(): boolean {
    return this.#part === 'done'
  }

  /** Reads the next bytes. Returns the position after the last byte of the section, or -1 if it is malformed. */
  read(bytes: Buffer, start: number, end: number): number {
    let at = start
    while (at < end && this.#part !== 'done') if (!this.#accepts(bytes[at++] ?? 0)) return -1
    return at
  }

  #accepts(byte: number): boolean {
    this.#count += 1
    switch (this.#part) {
      case 'start':
        this.#part = byte === CR ? 'end' : 'name'
        return byte === CR || TOKEN[byte] === 1
      case 'name':
        if (byte === COLON) this.#part = 'value'
        return (byte === COLON || TOKEN[byte] === 1) && !this.tooLong
      case 'value':
        if (byte === CR) this.#part = 'line-end'
        return byte === CR || (TEXT[byte] === 1 && !this.tooLong)
      case 'line-end':
        this.#part = 'start'
        return byte === LF
      default:
        this.#part = 'done'
        return byte === LF
    }
  }
}
