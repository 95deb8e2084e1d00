import { COLON, CR, isText, isToken, LF } from './http1-bytes.ts'

/** Nobody needs trailers here; more of them (bytes) are an attack. */
const LONGEST = 8 * 1024

/** What frames a message comes before it, or somebody is being deceived (RFC 9110 §6.5.1). */
const FRAMING: readonly string[] = ['content-length', 'transfer-encoding']
const LONGEST_FRAMING = 17

/** Reads a trailer section (RFC 9112 §7.1.2): fields, each ended by CRLF, and an empty line behind them. */
export class Trailers {
  #part: 'start' | 'name' | 'value' | 'line-end' | 'end' | 'done' = 'start'
  #count = 0
  /** As much of the name of a field as tells whether it is one that frames. */
  #name = ''

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
        this.#name = String.fromCharCode(byte)
        return byte === CR || isToken(byte)
      case 'name':
        if (byte === COLON) {
          this.#part = 'value'
          return !FRAMING.includes(this.#name.toLowerCase())
        }
        if (this.#name.length <= LONGEST_FRAMING) this.#name += String.fromCharCode(byte)
        return isToken(byte) && this.#count <= LONGEST
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
