import { TOKEN } from '../http/fields.ts'
import { LARGE_PIECE } from '../system/write-soon.ts'
import { chunkDeviation, type Deviation } from './deviation.ts'
import { CR, HeadReader, LF } from './head-reader.ts'

/** Called with the start and the end of each run of data in the bytes that are being read. */
type OnData = (start: number, end: number) => void

/** The limits on a chunked body, and how strictly it is read. */
export interface ChunkRules {
  /** The most bytes of extensions in one chunk. Their content is ignored (RFC 9112 §7.1.1). */
  readonly longestExtension: number
  /** The most bytes by which all extensions together may exceed the data. Bounds a body that is mostly extensions. */
  readonly mostExcess: number
  /** The longest trailer section (bytes). Undefined: the body ends with the last chunk, and trailers are not read. */
  readonly longestTrailers: number | undefined
  /**
   * Also accepts the deviations of old firmware: LF or CR CR LF as a line end, no line end after the data, blanks around the size, any
   * bytes after a semicolon.
   */
  readonly tolerant: boolean
}

/**
 * A chunk extension (RFC 9112 §7.1.1): a name, optionally with `=` and a token or a quoted string. Blanks between the parts are refused,
 * because parsers disagree about them.
 */
const TEXT = '\\t -~\\x80-\\xff'
const QUOTED = `"(?:(?!["\\\\])[${TEXT}]|\\\\[${TEXT}])*"`
const EXTENSION = `;${TOKEN}(?:=(?:${TOKEN}|${QUOTED}))?`

/** A chunk line: the size and the extensions. A safe integer has at most 14 hexadecimal digits; leading zeros may make it 16. */
const STRICT = new RegExp(`^([\\da-f]{1,16})((?:${EXTENSION})*)\\r\\n$`, 'i')
const TOLERANT = /^[ \t]*([\da-f]{1,16})[ \t]*(?:;.*|\r*)\n$/is
/** An incomplete chunk line, without its LF. */
const STRICT_PART = new RegExp(`^[\\da-f]{1,16}(?:;[${TEXT}]*)?\\r?$`, 'i')
const TOLERANT_PART = /^[ \t]*(?:[\da-f]{1,16}[ \t]*(?:;.*|\r*))?$/is

/** The longest chunk line without its extensions (bytes). The tolerant rules also accept blanks in the bytes for extensions. */
const LONGEST_BARE_LINE = '1234567890123456;\r\n'.length

const NOTHING = Buffer.alloc(0)

/**
 * Finds the data and the end of a chunked body in the bytes of a connection (RFC 9112 §7.1). The strict rules accept sizes up to 2^53 - 1
 * and only CRLF as a line end: two parsers that disagree about a chunk line also disagree about the start of the next message (request
 * smuggling). Trailers are dropped (RFC 9110 §6.5.1), because some of them would change the message if merged into the head.
 */
export class ChunkedBody {
  readonly #rules: ChunkRules
  readonly #trailers = new HeadReader('trailers')
  #begunTrailers: Buffer = NOTHING
  #part: 'line' | 'data' | 'data-end' | 'data-line-end' | 'trailers' | 'done' = 'line'
  /** The received part of the current chunk line. */
  #line = ''
  /** The bytes of data that are left in the current chunk. */
  #left = 0
  /** The number of bytes by which the extensions exceed the data so far; at least 0. */
  #excess = 0
  /** Why only the tolerant rules accept this body. The start of the next message is then uncertain. */
  deviation: Deviation | undefined
  /** The trailer section exceeds its limit. */
  tooLong = false

  constructor(rules: ChunkRules) {
    this.#rules = rules
  }

  get done(): boolean {
    return this.#part === 'done'
  }

  /**
   * Reads the next bytes and calls `onData` for each run of data. Stops at the end of the body. Returns the position after the last byte
   * that it read; -1 if the bytes are not a valid body.
   *
   * @param mostRuns the most runs of data to read
   */
  read(
    bytes: Buffer,
    start: number,
    end: number,
    onData: OnData,
    mostRuns: number = Number.POSITIVE_INFINITY,
  ): number {
    let at = start
    let runs = 0
    while (at >= 0 && at < end && this.#part !== 'done' && runs < mostRuns) {
      if (this.#part === 'data') {
        runs += 1
        const taken = Math.min(this.#left, end - at)
        onData(at, at + taken)
        this.#left -= taken
        at += taken
        if (this.#left === 0) this.#part = 'data-end'
      } else if (this.#part === 'line') at = this.#readLine(bytes, at, end)
      else if (this.#part === 'trailers') at = this.#readTrailers(bytes, at, end)
      else at = this.#readDataEnd(bytes, at, end)
    }
    return at
  }

  /**
   * Whether the rules tolerate a fault. If they do, the first such fault is the deviation of the body.
   *
   * @param text the text around the fault: a line, or the bytes from `at` to `end`
   */
  #tolerates(fault: string, text: string | Buffer, at = 0, end: number = text.length): boolean {
    const { tolerant } = this.#rules
    if (tolerant)
      this.deviation ??= chunkDeviation(
        fault,
        typeof text === 'string' ? text : text.toString('latin1', at, Math.min(end, at + LONGEST_BARE_LINE)),
      )
    return tolerant
  }

  #readLine(bytes: Buffer, at: number, end: number): number {
    const { longestExtension, tolerant } = this.#rules
    const longest = LONGEST_BARE_LINE + longestExtension
    const most = Math.min(end, at + longest - this.#line.length)
    const lineEnd = bytes.indexOf(LF, at)
    const whole = lineEnd >= 0 && lineEnd < most
    const after = whole ? lineEnd + 1 : most
    const line = this.#line + bytes.toString('latin1', at, after)
    this.#line = whole ? '' : line
    if (whole) return this.#takeLine(line) ? after : -1
    const mayGoOn = STRICT_PART.test(line) || (tolerant && TOLERANT_PART.test(line))
    return mayGoOn && line.length < longest ? after : -1
  }

  /** Interprets a complete chunk line. False if the rules do not allow it. */
  #takeLine(line: string): boolean {
    const [, digits, extensions = ''] = STRICT.exec(line) ?? []
    this.#left = Number.parseInt(digits ?? TOLERANT.exec(line)?.[1] ?? '', 16)
    if (!(this.#left <= Number.MAX_SAFE_INTEGER)) return false
    // The first semicolon does not count.
    const size = Math.max(0, extensions.length - 1)
    if (size > 0) this.#excess = Math.max(0, this.#excess + size - this.#left)
    const { longestExtension, mostExcess, longestTrailers } = this.#rules
    const isStrict = digits !== undefined && size <= longestExtension && this.#excess <= mostExcess
    if (!isStrict && !this.#tolerates('a malformed line of a chunk', line)) return false
    if (this.#left > 0) this.#part = 'data'
    else this.#part = this.deviation !== undefined || longestTrailers === undefined ? 'done' : 'trailers'
    return true
  }

  /** Reads a byte of the line end after the data. With the tolerant rules the next chunk may begin here. */
  #readDataEnd(bytes: Buffer, at: number, end: number): number {
    const byte = bytes[at]
    const isStrict = byte === (this.#part === 'data-end' ? CR : LF)
    if (!isStrict && !this.#tolerates('a chunk whose data ends without CR LF', bytes, at, end)) return -1
    this.#part = byte === CR ? 'data-line-end' : 'line'
    return byte === CR || byte === LF ? at + 1 : at
  }

  /** Reads trailers, which are fields and an empty line as in a head (RFC 9112 §7.1.2). */
  #readTrailers(bytes: Buffer, at: number, end: number): number {
    const before = this.#begunTrailers.length
    const all =
      before === 0 ? bytes.subarray(at, end) : Buffer.concat([this.#begunTrailers, bytes.subarray(at, end)])
    const most = Math.min(all.length, this.#rules.longestTrailers ?? 0)
    const progress = this.#trailers.read(all, 0, most)
    this.tooLong = progress === 'more' && most < all.length
    if (progress === 'more' && !this.tooLong) {
      this.#begunTrailers = Buffer.from(all)
      return end
    }
    if (progress !== 'done' && (this.tooLong || !this.#tolerates('malformed trailers', all))) return -1
    this.#part = 'done'
    // The data is complete. After an invalid trailer section the start of the next message is uncertain.
    return progress === 'done' ? at + this.#trailers.length - before : at
  }
}

/**
 * How a body piece was taken from the buffer of a read. `small`: copied. `large`: copied, and the piece was large, so a large body probably
 * follows. `kept`: the piece is a view of the buffer, so nothing else may be read into the buffer.
 */
export type Taken = 'small' | 'large' | 'kept'

/**
 * How a piece of `size` bytes that begins at `start` of a read is taken.
 *
 * @param keepable a piece of at least this size (bytes) at the beginning of the buffer is not copied
 */
export function takenOf(start: number, size: number, keepable: number): Taken {
  if (size < LARGE_PIECE) return 'small'
  return start === 0 && size >= keepable ? 'kept' : 'large'
}

/** The piece of a body from `start` to `end`: a copy, unless it is `kept`. */
export function pieceOf(bytes: Buffer, start: number, end: number, taken: Taken): Buffer {
  if (taken === 'kept') return end === bytes.length ? bytes : bytes.subarray(0, end)
  const size = end - start
  const piece = taken === 'large' ? Buffer.allocUnsafeSlow(size) : Buffer.allocUnsafe(size)
  bytes.copy(piece, 0, start, end)
  return piece
}

/** Collects the runs of data of one read, and joins them into one piece. */
export class BodyPieces {
  readonly #ends: number[] = []
  /** Twice the number of runs. */
  #count = 0
  #size = 0
  taken: Taken = 'small'

  readonly add: OnData = (start, end) => {
    this.#ends[this.#count] = start
    this.#ends[this.#count + 1] = end
    this.#count += 2
    this.#size += end - start
  }

  /** The number of runs. */
  get count(): number {
    return this.#count / 2
  }

  /** Joins the runs into one new piece and starts anew; undefined without data. A single run may be a view of `bytes`: see `takenOf`. */
  take(bytes: Buffer, keepable: number): Buffer | undefined {
    const size = this.#size
    const count = this.#count
    this.#size = 0
    this.#count = 0
    const [start = 0, end = 0] = this.#ends
    this.taken = count === 2 ? takenOf(start, size, keepable) : 'small'
    if (size === 0) return undefined
    if (count === 2) return pieceOf(bytes, start, end, this.taken)
    const body = size < LARGE_PIECE ? Buffer.allocUnsafe(size) : Buffer.allocUnsafeSlow(size)
    let at = 0
    for (let i = 0; i < count; i += 2) at += bytes.copy(body, at, this.#ends[i], this.#ends[i + 1])
    return body
  }
}
