import type { Fields } from '../http/fields.ts'
import { COLON, CR, HTAB, isBlank, LF, SP, TARGET, TEXT, TOKEN } from './bytes.ts'
import { NameMemory } from './name-memory.ts'

/** What has come of a head: not all of it yet, all of it, or something that HTTP does not allow. */
export type HeadProgress = 'more' | 'done' | 'fault'

/** A head that has been read. The parts of its first line are those of a request or of a response. */
export interface HeadText {
  /** Empty in a response. */
  readonly method: string
  /** The target of a request, the status of a response. */
  readonly target: string
  readonly version: '1.0' | '1.1'
  /** Empty in a request. */
  readonly reason: string
  readonly fields: Fields
}

/** The end of a request's first line, and the beginning of a response's; in place of the zero there may be a one. */
const VERSION = Buffer.from('HTTP/1.0\r\n')
const RESPONSE_VERSION = Buffer.from('HTTP/1.0 ')
const MINOR_VERSION = VERSION.indexOf('0')
const ZERO = 0x30
const ONE = 0x31
const NINE = 0x39

/**
 * How many bytes of empty lines are skipped in front of a request: eight lines. RFC 9112 §2.2 has a server ignore them,
 * because some clients send one behind every body. Without a bound a client could hold a connection with empty lines alone.
 */
const MOST_EMPTY = 8 * '\r\n'.length

/** The parts of a head in the order of their bytes; those of a field come again and again. */
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
 * Reads the heads of one connection, one after the other, as RFC 9112 writes them and no other way. The first line of a
 * request is a token, one space, a target, one space, HTTP/1.0 or HTTP/1.1, CRLF; that of a response is HTTP/1.0 or HTTP/1.1,
 * one space, three digits, and perhaps one space and text, CRLF. Then come fields, each a token, a colon at once, text, CRLF;
 * then CRLF. Line ends may stand in front: a few CRLF in front of a request (§2.2), any CR or LF in front of a response, because
 * firmware sends them behind a body. Every byte is looked at once, however the head is cut into packets.
 */
export class HeadReader {
  readonly #ofResponse: boolean
  #part = START
  /** Up to where the head has been read, from its first byte. */
  #at = 0
  /** Where the parts lie: three of the first line, then of each field the name, and the value with blanks behind it. */
  readonly #marks: number[] = []
  #marked = 0
  readonly #names: NameMemory | undefined

  constructor(of: 'requests' | 'responses') {
    this.#ofResponse = of === 'responses'
    // A remembered name may keep the whole head alive that it was cut from. Clients could fill the memory so.
    this.#names = this.#ofResponse ? new NameMemory() : undefined
  }

  /** Part of the first line has been read. Line ends in front of it do not count. */
  get begun(): boolean {
    return this.#part > EMPTY_LINE
  }

  /** Bytes of the head, once it is done. */
  get length(): number {
    return this.#at
  }

  /** Forgets a head that has not been taken. */
  reset(): void {
    this.#part = START
    this.#at = 0
  }

  /** Reads on; the head begins at `start`, also when some of it has been read before, and has come up to `end`. */
  read(bytes: Buffer, start: number, end: number): HeadProgress {
    const marks = this.#marks
    let marked = this.#marked
    let part = this.#part
    let at = start + this.#at
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
          const place = at - start - (marks[2] ?? 0)
          if (byte !== VERSION[place] && !(place === MINOR_VERSION && byte === ONE)) return 'fault'
          if (byte === LF) part = LINE
          break
        }
        case RESPONSE_PROTOCOL: {
          const place = at - start - (marks[0] ?? 0)
          if (byte !== RESPONSE_VERSION[place] && !(place === MINOR_VERSION && byte === ONE)) return 'fault'
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
          this.#at = at + 1 - start
          this.#part = START
          this.#marked = marked
          return byte === LF ? 'done' : 'fault'
      }
      at += 1
    }
    this.#at = at - start
    this.#part = part
    this.#marked = marked
    return 'more'
  }

  /** The head that is done, and makes ready for the next one. */
  take(bytes: Buffer, start: number): HeadText {
    const text = bytes.toString('latin1', start, start + this.#at)
    this.#at = 0
    const [first = 0, second = 0, third = 0] = this.#marks
    const fields = this.#fields(text)
    if (this.#ofResponse) {
      const version = text.charCodeAt(first + MINOR_VERSION) === ZERO ? '1.0' : '1.1'
      const reason = text.slice(third, text.indexOf('\r', third))
      return { method: '', target: text.slice(second, second + 3), version, reason, fields }
    }
    const version = text.charCodeAt(third + MINOR_VERSION) === ZERO ? '1.0' : '1.1'
    const target = text.slice(second, third - 1)
    return { method: text.slice(first, second - 1), target, version, reason: '', fields }
  }

  #fields(text: string): Fields {
    const marks = this.#marks
    const fields: string[] = []
    for (let i = 3; i < this.#marked; i += 4) {
      const colon = marks[i + 1] ?? 0
      const value = marks[i + 2] ?? 0
      const behind = marks[i + 3] ?? 0
      let end = behind
      while (end > value && isBlank(text.charCodeAt(end - 1))) end -= 1
      const name = this.#names?.at((i - 3) / 4, text, marks[i] ?? 0, colon) ?? text.slice(marks[i], colon)
      if (end < behind && !this.#ofResponse && isCoding(name) && text.slice(end, behind).includes('\t'))
        end = behind
      fields.push(name, text.slice(value, end))
    }
    return fields
  }
}

const TRANSFER_ENCODING = 'transfer-encoding'

/**
 * A tab behind a coding stays in a request, so that the coding is none: Node's parser does not know a coding with a tab behind
 * it, and neither may the device's.
 */
function isCoding(name: string): boolean {
  return name.length === TRANSFER_ENCODING.length && name.toLowerCase() === TRANSFER_ENCODING
}
