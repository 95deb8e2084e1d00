import { TOKEN } from '../http/fields.ts'
import { CR, isBlank, LF, TEXT } from './bytes.ts'

/** The limits on a chunked body, and how strictly it is read. */
export interface ChunkRules {
  /** The longest extensions of one chunk (bytes). Their content is ignored (RFC 9112 §7.1.1). */
  readonly longestExtension: number
  /** By how many bytes all extensions may exceed the data. It bounds a body that is mostly extensions. */
  readonly mostExcess: number
  /** The longest trailer section (bytes). Undefined: the body ends with the last chunk, and trailers are not read. */
  readonly longestTrailers: number | undefined
  /**
   * Also accepts the deviations of old firmware: LF or CR CR LF as a line end, no line end after the data, blanks around the
   * size, any bytes after a semicolon.
   */
  readonly tolerant: boolean
}

const SEMICOLON = 0x3b

/**
 * The extensions of one chunk after the first semicolon (RFC 9112 §7.1.1). Each is a name, optionally with `=` and a token or a quoted
 * string. Blanks between the parts are refused, because parsers disagree about them.
 */
const EXTENSION = String.raw`${TOKEN}(?:=(?:${TOKEN}|"(?:[^"\\]|\\.)*"))?`
const EXTENSIONS = new RegExp(`^${EXTENSION}(?:;${EXTENSION})*$`)

/** The most digits of a chunk size, leading zeros included. A safe integer needs 14. */
const MOST_SIZE_DIGITS = 16
/** The longest malformed extension that the tolerant rules skip (bytes). */
const LONGEST_SLOPPY_LINE = 4096

type Part =
  | 'size'
  | 'padding'
  | 'extension'
  | 'sloppy-line'
  | 'line-end'
  | 'data'
  | 'data-end'
  | 'data-line-end'
  | 'done'

/**
 * Reads the chunks of a body, including the line of the last chunk (RFC 9112 §7.1). The strict rules accept sizes to 2^53 - 1
 * and only CRLF as a line end. Two parsers that disagree about a chunk line also disagree about the start of the next message
 * (request smuggling).
 */
export class Chunks {
  readonly #rules: ChunkRules
  #part: Part = 'size'
  /** The number of digits of the size, or of bytes of the extensions, read so far. */
  #count = 0
  /** The size read so far, then the bytes of data that are left. */
  #left = 0
  #extensions = ''
  /** By how many bytes the extensions read so far exceed the data. */
  #excess = 0
  /** Only the tolerant rules accept these chunks. */
  sloppy = false

  constructor(rules: ChunkRules) {
    this.#rules = rules
  }

  /** The last chunk is read; the trailer section follows. */
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
      else if (this.#accepts(byte)) at += 1
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

  /** The next chunk begins directly after the data of the previous one. */
  #lacksLineEnd(byte: number): boolean {
    const atEnd = this.#part === 'data-end' || this.#part === 'data-line-end'
    return atEnd && byte !== CR && byte !== LF && this.#tolerates()
  }

  /** Reads a byte that is not data. False if the rules do not allow it here. */
  #accepts(byte: number): boolean {
    switch (this.#part) {
      case 'size':
        return this.#acceptsSize(byte)
      case 'padding':
        return isBlank(byte) || this.#acceptsAfterSize(byte)
      case 'extension':
        return this.#acceptsExtension(byte)
      case 'sloppy-line':
        return this.#acceptsSloppyLine(byte)
      case 'line-end':
        return byte === LF ? this.#endLine() : byte === CR && this.#tolerates()
      case 'data-end':
        if (byte === CR) return this.#enter('data-line-end')
        return this.#tolerates() && this.#enter('size')
      default:
        return byte === LF ? this.#enter('size') : this.#tolerates()
    }
  }

  #acceptsSize(byte: number): boolean {
    const digit = hexDigit(byte)
    if (digit >= 0) {
      this.#left = this.#count === 0 ? digit : this.#left * 16 + digit
      this.#count += 1
      return this.#count <= MOST_SIZE_DIGITS && this.#left <= Number.MAX_SAFE_INTEGER
    }
    if (this.#count === 0) return isBlank(byte) && this.#tolerates()
    return isBlank(byte) ? this.#tolerates() && this.#enter('padding') : this.#acceptsAfterSize(byte)
  }

  #acceptsAfterSize(byte: number): boolean {
    switch (byte) {
      case CR:
        return this.#enter('line-end')
      case LF:
        return this.#tolerates() && this.#endLine()
      case SEMICOLON:
        this.#extensions = ''
        return this.#enter('extension')
      default:
        return false
    }
  }

  #acceptsExtension(byte: number): boolean {
    if (byte === CR) {
      this.#excess = Math.max(0, this.#excess + this.#count - this.#left)
      const sound = this.#excess <= this.#rules.mostExcess && EXTENSIONS.test(this.#extensions)
      return sound ? this.#enter('line-end') : this.#tolerates() && this.#enter('sloppy-line')
    }
    this.#count += 1
    this.#extensions += String.fromCharCode(byte)
    if (TEXT[byte] === 1 && this.#count <= this.#rules.longestExtension) return true
    if (!this.#tolerates()) return false
    this.#part = 'sloppy-line'
    return this.#acceptsSloppyLine(byte)
  }

  #acceptsSloppyLine(byte: number): boolean {
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
