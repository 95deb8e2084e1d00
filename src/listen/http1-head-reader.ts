import type { Fields } from '../http/fields.ts'
import { COLON, CR, HTAB, isTarget, isText, isToken, LF, SP } from './http1-bytes.ts'
import { type Http1Head, meaningOf } from './http1-head.ts'

/** What has come of a head: not all of it yet, all of it, or something that HTTP does not allow. */
export type HeadProgress = 'more' | 'done' | 'fault'

/** What stands behind the target; in place of the zero there may be a one. */
const VERSION = Buffer.from('HTTP/1.0\r\n')
const MINOR_VERSION = VERSION.indexOf('0')
const ZERO = 0x30
const ONE = 0x31

/**
 * How many bytes of empty lines are skipped in front of a head: eight lines. RFC 9112 §2.2 has a server ignore them,
 * because some clients send one behind every body. Without a bound a client could hold a connection with empty lines alone.
 */
const MOST_EMPTY = 8 * '\r\n'.length

/** The parts of a head in the order of their bytes; those of a field come again and again. */
const START = 0
const EMPTY_LINE = 1
const METHOD = 2
const TARGET = 3
const PROTOCOL = 4
const LINE = 5
const NAME = 6
const BLANK = 7
const VALUE = 8
const LINE_END = 9
const LAST_END = 10

/**
 * Reads the heads of one connection, one after the other, as RFC 9112 writes them and no other way: a token, one space,
 * a target, one space, HTTP/1.0 or HTTP/1.1, CRLF; then fields, each a token, a colon at once, text, CRLF; then CRLF. A few
 * empty lines may stand in front (§2.2): each a CRLF, because a bare LF or CR ends no line here. Every byte is looked at
 * once, however the head is cut into packets.
 */
export class HeadReader {
  #part = START
  /** Up to where the head has been read. */
  #at = 0
  /** Where the parts lie: the target, the version, then of each field the name, and the value with blanks behind it. */
  readonly #marks: number[] = []
  #marked = 0

  /** Part of a request line has been read. Empty lines in front of it do not count. */
  get begun(): boolean {
    return this.#part > EMPTY_LINE
  }

  /** Bytes of the head, once it is done. */
  get length(): number {
    return this.#at
  }

  /** Reads on; `bytes` begins where the head does, also when some of it has been read before. */
  read(bytes: Buffer): HeadProgress {
    const end = bytes.length
    let part = this.#part
    let at = this.#at
    while (at < end) {
      const byte = bytes[at] ?? 0
      switch (part) {
        case START:
          if (byte === CR && at < MOST_EMPTY) part = EMPTY_LINE
          else if (isToken(byte)) {
            this.#marked = 0
            this.#mark(at)
            part = METHOD
          } else return 'fault'
          break
        case EMPTY_LINE:
          if (byte !== LF) return 'fault'
          part = START
          break
        case METHOD:
          while (at < end && isToken(bytes[at] ?? 0)) at += 1
          if (at === end) continue
          if (bytes[at] !== SP) return 'fault'
          this.#mark(at + 1)
          part = TARGET
          break
        case TARGET:
          while (at < end && isTarget(bytes[at] ?? 0)) at += 1
          if (at === end) continue
          if (bytes[at] !== SP || at === this.#marks[1]) return 'fault'
          this.#mark(at + 1)
          part = PROTOCOL
          break
        case PROTOCOL: {
          const place = at - (this.#marks[2] ?? 0)
          if (byte !== VERSION[place] && !(place === MINOR_VERSION && byte === ONE)) return 'fault'
          if (byte === LF) part = LINE
          break
        }
        case LINE:
          if (byte === CR) part = LAST_END
          else if (isToken(byte)) {
            this.#mark(at)
            part = NAME
          } else return 'fault'
          break
        case NAME:
          while (at < end && isToken(bytes[at] ?? 0)) at += 1
          if (at === end) continue
          if (bytes[at] !== COLON) return 'fault'
          this.#mark(at)
          part = BLANK
          break
        case BLANK:
          if (byte === SP || byte === HTAB) break
          this.#mark(at)
          part = VALUE
          continue
        case VALUE:
          while (at < end && isText(bytes[at] ?? 0)) at += 1
          if (at === end) continue
          if (bytes[at] !== CR) return 'fault'
          this.#mark(at)
          part = LINE_END
          break
        case LINE_END:
          if (byte !== LF) return 'fault'
          part = LINE
          break
        default:
          this.#at = at + 1
          this.#part = START
          return byte === LF ? 'done' : 'fault'
      }
      at += 1
    }
    this.#at = at
    this.#part = part
    return 'more'
  }

  /** The head that is done, and makes ready for the next one. Undefined where readers could disagree about it. */
  take(bytes: Buffer): Http1Head | undefined {
    const text = bytes.toString('latin1', 0, this.#at)
    const [start = 0, target = 0, protocol = 0] = this.#marks
    const version = bytes[protocol + MINOR_VERSION] === ZERO ? '1.0' : '1.1'
    const fields = this.#fields(text, bytes)
    this.#at = 0
    if (fields === undefined) return undefined
    return meaningOf(text.slice(start, target - 1), text.slice(target, protocol - 1), version, fields)
  }

  #mark(at: number): void {
    this.#marks[this.#marked] = at
    this.#marked += 1
  }

  #fields(text: string, bytes: Buffer): Fields | undefined {
    const marks = this.#marks
    const fields: string[] = []
    for (let i = 3; i < this.#marked; i += 4) {
      const colon = marks[i + 1] ?? 0
      const value = marks[i + 2] ?? 0
      const behind = marks[i + 3] ?? 0
      let end = behind
      while (end > value && isBlank(bytes[end - 1])) end -= 1
      const name = text.slice(marks[i], colon)
      if (end < behind && isCoding(name) && text.slice(end, behind).includes('\t')) return undefined
      fields.push(name, text.slice(value, end))
    }
    return fields
  }
}

/** Node's parser does not know a coding with a tab behind it, others may not either. */
function isCoding(name: string): boolean {
  return name.length === TRANSFER_ENCODING.length && name.toLowerCase() === TRANSFER_ENCODING
}

const TRANSFER_ENCODING = 'transfer-encoding'

function isBlank(byte: number | undefined): boolean {
  return byte === SP || byte === HTAB
}
