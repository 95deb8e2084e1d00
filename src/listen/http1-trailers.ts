import { CR, isText, LF } from './http1-bytes.ts'

/** Nobody needs trailers here; more of them (bytes) are an attack. */
const LONGEST = 8 * 1024

/** Reads a trailer section (RFC 9112 §7.1.2): lines of text, each ended by CRLF, and an empty one behind them. */
export class Trailers {
  #part: 'start' | 'line' | 'line-end' | 'end' | 'done' = 'start'
  #count = 0

  get done(): boolean {
    return this.#part === 'done'
  }

  again(): void {
    this.#part = 'start'
    this.#count = 0
  }

  /** Reads on; gives the position behind what belongs to the section, or -1 where it is none. */
  read(chunk: Buffer, from: number): number {
    let at = from
    while (at < chunk.length && !this.done) if (!this.#reads(chunk[at++] ?? 0)) return -1
    return at
  }

  #reads(byte: number): boolean {
    this.#count += 1
    switch (this.#part) {
      case 'line-end':
        this.#part = 'start'
        return byte === LF
      case 'end':
        this.#part = 'done'
        return byte === LF
      default:
        if (byte !== CR) {
          this.#part = 'line'
          return isText(byte) && this.#count <= LONGEST
        }
        this.#part = this.#part === 'start' ? 'end' : 'line-end'
        return true
    }
  }
}
