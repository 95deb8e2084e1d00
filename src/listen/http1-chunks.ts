import { CR, LF } from './http1-bytes.ts'
import { ChunkExtensions } from './http1-chunk-extensions.ts'

const SEMICOLON = 0x3b

/** No size needs more digits; zeros in front are counted, too. */
const MOST_SIZE_DIGITS = 16
/** An extension means nothing to anybody (RFC 9112 §7.1.1); longer than this (bytes), it is an attack. */
const LONGEST_EXTENSION = 256
/** So many bytes of them may come for which there was no data. */
const MOST_EXCESS = 16 * 1024

type Part = 'size' | 'extension' | 'line-end' | 'data' | 'data-end' | 'data-line-end' | 'done'

/**
 * Reads the chunks of a body up to the line of the last one, as RFC 9112 §7.1 writes them: a size that a number can
 * hold, CRLF and nothing else where a line ends. Readers that disagree about a line here disagree about where the next
 * request begins.
 */
export class Chunks {
  #part: Part = 'size'
  /** Digits of the size, or bytes of the extension. */
  #count = 0
  #left = 0
  #extensions = new ChunkExtensions()
  /** Bytes of extensions, less those of the data that came with them. */
  #excess = 0

  /** The last chunk has been read; the trailer section follows. */
  get done(): boolean {
    return this.#part === 'done'
  }

  /** Reads on and hands over the data; gives the position behind what belongs to the chunks, or -1 where they are none. */
  read(bytes: Buffer, onData: (data: Buffer) => void): number {
    let at = 0
    while (at < bytes.length && !this.done) {
      if (this.#part === 'data') {
        const taken = Math.min(this.#left, bytes.length - at)
        onData(bytes.subarray(at, at + taken))
        this.#left -= taken
        at += taken
        if (this.#left === 0) this.#enter('data-end')
      } else if (!this.#reads(bytes[at++] ?? 0)) return -1
    }
    return at
  }

  #enter(part: Part): void {
    this.#part = part
    this.#count = 0
  }

  /** Takes a byte that is not data. False if it may not stand there. */
  #reads(byte: number): boolean {
    switch (this.#part) {
      case 'size':
        return this.#readsSize(byte)
      case 'extension':
        return this.#readsExtension(byte)
      case 'line-end':
        this.#enter(this.#left === 0 ? 'done' : 'data')
        return byte === LF
      case 'data-end':
        this.#enter('data-line-end')
        return byte === CR
      default:
        this.#enter('size')
        return byte === LF
    }
  }

  #readsSize(byte: number): boolean {
    const digit = hexDigit(byte)
    if (digit >= 0) {
      this.#count += 1
      this.#left = this.#left * 16 + digit
      return this.#count <= MOST_SIZE_DIGITS && this.#left <= Number.MAX_SAFE_INTEGER
    }
    if (this.#count === 0) return false
    if (byte === CR) this.#enter('line-end')
    else {
      this.#enter('extension')
      this.#extensions = new ChunkExtensions()
    }
    return byte === CR || byte === SEMICOLON
  }

  #readsExtension(byte: number): boolean {
    if (byte === CR) {
      this.#excess = Math.max(0, this.#excess + this.#count - this.#left)
      this.#enter('line-end')
      return this.#excess <= MOST_EXCESS && this.#extensions.complete
    }
    this.#count += 1
    return this.#extensions.reads(byte) && this.#count <= LONGEST_EXTENSION
  }
}

/** -1 for what is no digit. */
function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
