import { CR, isBlank, LF } from './bytes.ts'
import { ChunkExtensions } from './chunk-extensions.ts'

/** The limits of a chunked body, and how strictly it is read. */
export interface ChunkRules {
  /** The longest extension of one chunk (bytes). Extensions are ignored (RFC 9112 §7.1.1). */
  readonly longestExtension: number
  /** How many bytes of extensions may exceed the bytes of data: the bound on a body that is mostly extensions. */
  readonly mostExcess: number
  /** The longest trailer section (bytes). Undefined: the body ends with the last chunk, and no trailers are read. */
  readonly longestTrailers: number | undefined
  /**
   * Accepts also what old firmware sends: LF or CR CR LF as a line end, no line end after the data, blanks around the size,
   * any bytes after a semicolon.
   */
  readonly tolerant: boolean
}

const SEMICOLON = 0x3b

/** The most digits of a chunk size, leading zeros included. A safe integer needs 14. */
const MOST_SIZE_DIGITS = 16
/** The longest malformed extension that the tolerant rules skip (bytes). */
const LONGEST_SLOPPY_LINE = 4096

type Part =
  | 'size'
  | 'padding'
  | 'extension'
  | 'anything'
  | 'line-end'
  | 'data'
  | 'data-end'
  | 'data-line-end'
  | 'done'

/**
 * Reads the chunks of a body, the line of the last chunk included (RFC 9112 §7.1). The strict rules take a size up to 2^53 - 1
 * and only CRLF as a line end: two readers that disagree about a chunk line disagree about where the next message begins
 * (request smuggling).
 */
export class Chunks {
  readonly #rules: ChunkRules
  #part: Part = 'size'
  /** Digits of the size so far, or bytes of the extension so far. */
  #count = 0
  #left = 0
  #extensions = new ChunkExtensions()
  /** Bytes of extensions so far that exceed the bytes of data. */
  #excess = 0
  /** The chunks held something that only the tolerant rules accept. */
  sloppy = false

  constructor(rules: ChunkRules) {
    this.#rules = rules
  }

  /** The last chunk has been read; the trailer section follows. */
  get done(): boolean {
    return this.#part === 'done'
  }

  /**
   * Reads the next bytes and calls `onData` for each run of data. Returns the position after the last byte of the chunks, or
   * -1 if the bytes are not valid chunks.
   */
  read(bytes: Buffer, start: number, end: number, onData: (start: number, end: number) => void): number {
    let at = start
    while (at < end && this.#part !== 'done') {
      const byte = bytes[at] ?? 0
      if (this.#part === 'data') {
        const taken = Math.min(this.#left, end - at)
        onData(at, at + taken)
        this.#left -= taken
        at += taken
        if (this.#left === 0) this.#enter('data-end')
      } else if (this.#lacksLineEnd(byte)) this.#enter('size')
      else if (this.#reads(byte)) at += 1
      else return -1
    }
    return at
  }

  #enter(part: Part): true {
    this.#part = part
    this.#count = 0
    return true
  }

  #tolerates(): boolean {
    this.sloppy ||= this.#rules.tolerant
    return this.#rules.tolerant
  }

  /** The next chunk begins directly after the data of the one before. */
  #lacksLineEnd(byte: number): boolean {
    const atEnd = this.#part === 'data-end' || this.#part === 'data-line-end'
    return atEnd && byte !== CR && byte !== LF && this.#tolerates()
  }

  /** Takes a byte that is not data. False if the rules do not allow it here. */
  #reads(byte: number): boolean {
    switch (this.#part) {
      case 'size':
        return this.#readsSize(byte)
      case 'padding':
        return isBlank(byte) || this.#readsBehindSize(byte)
      case 'extension':
        return this.#readsExtension(byte)
      case 'anything':
        return this.#readsAnything(byte)
      case 'line-end':
        return byte === LF ? this.#endLine() : byte === CR && this.#tolerates()
      case 'data-end':
        if (byte === CR) return this.#enter('data-line-end')
        return this.#tolerates() && this.#enter('size')
      default:
        return byte === LF ? this.#enter('size') : this.#tolerates()
    }
  }

  #readsSize(byte: number): boolean {
    const digit = hexDigit(byte)
    if (digit >= 0) {
      this.#left = this.#count === 0 ? digit : this.#left * 16 + digit
      this.#count += 1
      return this.#count <= MOST_SIZE_DIGITS && this.#left <= Number.MAX_SAFE_INTEGER
    }
    if (this.#count === 0) return isBlank(byte) && this.#tolerates()
    return isBlank(byte) ? this.#tolerates() && this.#enter('padding') : this.#readsBehindSize(byte)
  }

  #readsBehindSize(byte: number): boolean {
    switch (byte) {
      case CR:
        return this.#enter('line-end')
      case LF:
        return this.#tolerates() && this.#endLine()
      case SEMICOLON:
        this.#extensions = new ChunkExtensions()
        return this.#enter('extension')
      default:
        return false
    }
  }

  #readsExtension(byte: number): boolean {
    if (byte === CR) {
      this.#excess = Math.max(0, this.#excess + this.#count - this.#left)
      const sound = this.#excess <= this.#rules.mostExcess && this.#extensions.complete
      return sound ? this.#enter('line-end') : this.#tolerates() && this.#enter('anything')
    }
    this.#count += 1
    if (this.#extensions.reads(byte) && this.#count <= this.#rules.longestExtension) return true
    if (!this.#tolerates()) return false
    this.#part = 'anything'
    return this.#readsAnything(byte)
  }

  #readsAnything(byte: number): boolean {
    this.#count += 1
    return byte === LF ? this.#endLine() : this.#count <= LONGEST_SLOPPY_LINE
  }

  #endLine(): true {
    return this.#enter(this.#left === 0 ? 'done' : 'data')
  }
}

/** The value of a hexadecimal digit; -1 for any other byte. */
function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
