import type { Fields } from '../http/fields.ts'
import { COLON, CR, HTAB, LF, NINE, ONE, SP, TARGET, TEXT, TOKEN, ZERO } from './bytes.ts'
import { NameMemory } from './head-memory.ts'
import type { RequestHeadText } from './request-head.ts'
import type { ResponseHeadText } from './response-head.ts'

/** How far a head has been read: `more` bytes are needed, it is `done`, or it holds a `fault`. */
export type HeadProgress = 'more' | 'done' | 'fault'

/** The end of a request line, and the start of a status line. The minor version may be 0 or 1. */
const VERSION = Buffer.from('HTTP/1.0\r\n')
const RESPONSE_VERSION = Buffer.from('HTTP/1.0 ')
const MINOR_VERSION = VERSION.indexOf('0')

/**
 * The most bytes of empty lines skipped before a request: eight lines. RFC 9112 §2.2 tells servers to ignore them, because some
 * clients send one after every body. The bound keeps a client from occupying a connection with empty lines alone.
 */
const MOST_EMPTY = 8 * '\r\n'.length

/** The states of the reader, in the order of the bytes. `LINE` to `LINE_END` repeat for each field. */
const START = 0
const EMPTY_LINE = 1
const METHOD = 2
const REQUEST_TARGET = 3
const PROTOCOL = 4
const RESPONSE_PROTOCOL = 5
const STATUS = 6
const BEHIND_STATUS = 7
const REASON = 8
const FIRST_LINE_END = 9
const LINE = 10
const NAME = 11
const BLANK = 12
const VALUE = 13
const LINE_END = 14
const LAST_END = 15

/**
 * Reads the heads of one connection, one after the other, strictly by RFC 9112.
 *
 * - Request line: token, one space, target, one space, `HTTP/1.0` or `HTTP/1.1`, CRLF.
 * - Status line: `HTTP/1.0` or `HTTP/1.1`, one space, three digits, optionally one space and text, CRLF.
 * - Each field: token, a colon without a space before it, text, CRLF. An empty line ends the head.
 * - A few CRLF before a request are skipped (§2.2), and every CR or LF before a response: firmware sends them after a body.
 *
 * Every byte is read once, however the head is split into packets.
 */
export class HeadReader {
  readonly #ofResponse: boolean
  #part = START
  /** How many bytes of the head have been read, skipped line ends included. 0 again after it is taken. */
  length = 0
  /**
   * Positions in the head. The first three are the starts of the parts of the first line. Then each field has four: the start
   * of its name, its colon, the start of its value, and the end of the blanks after the value.
   */
  readonly #marks: number[] = []
  #marked = 0
  readonly #names: NameMemory | undefined

  /** `trailers`: the section has no first line. */
  constructor(of: 'requests' | 'responses' | 'trailers') {
    this.#ofResponse = of === 'responses'
    if (of === 'trailers') this.#part = LINE
    // V8 may keep a whole head in memory for one remembered name. Clients could exhaust memory so: only responses get a memory.
    this.#names = this.#ofResponse ? new NameMemory() : undefined
  }

  /** A part of the first line has been read. Line ends before it do not count. */
  get begun(): boolean {
    return this.#part > EMPTY_LINE
  }

  /** Forgets a head that was not taken. */
  reset(): void {
    this.#part = START
    this.length = 0
  }

  /** Continues with the head. `start` is its first byte in `bytes`, on every call; `end` is where the received bytes end. */
  read(bytes: Buffer, start: number, end: number): HeadProgress {
    const marks = this.#marks
    let marked = this.#marked
    let part = this.#part
    let at = start + this.length
    while (at < end) {
      const byte = bytes[at] ?? 0
      switch (part) {
        case START:
          if (this.#ofResponse ? byte === CR || byte === LF : byte === CR && at - start < MOST_EMPTY) {
            if (!this.#ofResponse) part = EMPTY_LINE
            break
          }
          if (TOKEN[byte] !== 1) return 'fault'
          marked = 0
          marks[marked++] = at - start
          part = this.#ofResponse ? RESPONSE_PROTOCOL : METHOD
          continue
        case EMPTY_LINE:
          if (byte !== LF) return 'fault'
          part = START
          break
        case METHOD:
          while (at < end && TOKEN[bytes[at] ?? 0] === 1) at += 1
          if (at === end) continue
          if (bytes[at] !== SP) return 'fault'
          marks[marked++] = at - start + 1
          part = REQUEST_TARGET
          break
        case REQUEST_TARGET:
          while (at < end && TARGET[bytes[at] ?? 0] === 1) at += 1
          if (at === end) continue
          if (bytes[at] !== SP || at - start === marks[1]) return 'fault'
          marks[marked++] = at - start + 1
          part = PROTOCOL
          break
        case PROTOCOL: {
          const offset = at - start - (marks[2] ?? 0)
          if (byte !== VERSION[offset] && !(offset === MINOR_VERSION && byte === ONE)) return 'fault'
          if (byte === LF) part = LINE
          break
        }
        case RESPONSE_PROTOCOL: {
          const offset = at - start - (marks[0] ?? 0)
          if (byte !== RESPONSE_VERSION[offset] && !(offset === MINOR_VERSION && byte === ONE)) return 'fault'
          if (byte !== SP) break
          marks[marked++] = at - start + 1
          part = STATUS
          break
        }
        case STATUS:
          if (byte < (at - start === marks[1] ? ONE : ZERO) || byte > NINE) return 'fault'
          if (at - start - (marks[1] ?? 0) === 2) part = BEHIND_STATUS
          break
        case BEHIND_STATUS:
          if (byte !== SP && byte !== CR) return 'fault'
          marks[marked++] = byte === SP ? at - start + 1 : at - start
          part = byte === SP ? REASON : FIRST_LINE_END
          break
        case REASON:
          while (at < end && TEXT[bytes[at] ?? 0] === 1) at += 1
          if (at === end) continue
          if (bytes[at] !== CR) return 'fault'
          part = FIRST_LINE_END
          break
        case LINE:
          if (byte === CR) part = LAST_END
          else if (TOKEN[byte] === 1) {
            marks[marked++] = at - start
            part = NAME
          } else return 'fault'
          break
        case NAME:
          while (at < end && TOKEN[bytes[at] ?? 0] === 1) at += 1
          if (at === end) continue
          if (bytes[at] !== COLON) return 'fault'
          marks[marked++] = at - start
          part = BLANK
          break
        case BLANK:
          if (byte === SP || byte === HTAB) break
          marks[marked++] = at - start
          part = VALUE
          continue
        case VALUE:
          while (at < end && TEXT[bytes[at] ?? 0] === 1) at += 1
          if (at === end) continue
          if (bytes[at] !== CR) return 'fault'
          marks[marked++] = at - start
          part = LINE_END
          break
        case FIRST_LINE_END:
        case LINE_END:
          if (byte !== LF) return 'fault'
          part = LINE
          break
        default:
          this.length = at + 1 - start
          this.#part = START
          this.#marked = marked
          return byte === LF ? 'done' : 'fault'
      }
      at += 1
    }
    this.length = at - start
    this.#part = part
    this.#marked = marked
    return 'more'
  }

  /** Returns the request head that is done and starts the next head. */
  takeRequest(bytes: Buffer, start: number): RequestHeadText {
    const text = bytes.toString('latin1', start, start + this.length)
    this.length = 0
    const [method = 0, target = 0, protocol = 0] = this.#marks
    const version = versionAt(text, protocol)
    const name = text.slice(method, target - 1)
    return { method: name, target: text.slice(target, protocol - 1), version, fields: this.#fields(text) }
  }

  /** Returns the response head that is done and starts the next head. */
  takeResponse(bytes: Buffer, start: number): ResponseHeadText {
    const text = bytes.toString('latin1', start, start + this.length)
    this.length = 0
    const [protocol = 0, status = 0, reason = 0] = this.#marks
    const version = versionAt(text, protocol)
    const phrase = text.slice(reason, text.indexOf('\r', reason))
    return { version, status: text.slice(status, status + 3), reason: phrase, fields: this.#fields(text) }
  }

  #fields(text: string): Fields {
    const marks = this.#marks
    const fields: string[] = []
    for (let i = 3; i < this.#marked; i += 4) {
      const colon = marks[i + 1] ?? 0
      const value = marks[i + 2] ?? 0
      const after = marks[i + 3] ?? 0
      let end = after
      for (let last = text.charCodeAt(end - 1); end > value && (last === SP || last === HTAB); ) {
        end -= 1
        last = text.charCodeAt(end - 1)
      }
      const name = this.#names?.at((i - 3) / 4, text, marks[i] ?? 0, colon) ?? text.slice(marks[i], colon)
      if (end < after && !this.#ofResponse && keepsBlanks(name, text.slice(end, after))) end = after
      fields.push(name, text.slice(value, end))
    }
    return fields
  }
}

/** The version whose `HTTP/` begins at `start`. */
function versionAt(text: string, start: number): '1.0' | '1.1' {
  return text.charCodeAt(start + MINOR_VERSION) === ZERO ? '1.0' : '1.1'
}

const TRANSFER_ENCODING = /^transfer-encoding$/i

/**
 * A tab after a request's transfer coding stays in the value, so the gate refuses the request for an unknown coding. Some
 * parsers, such as Node's, do not recognize `chunked` with a tab after it: a device with such a parser would miss the body.
 */
function keepsBlanks(name: string, blanks: string): boolean {
  return blanks.includes('\t') && TRANSFER_ENCODING.test(name)
}
