import { type Fields, TOKEN } from '../http/fields.ts'
import { NameMemory } from './head-memory.ts'
import type { RequestHeadText } from './request-head.ts'
import type { ResponseHeadText } from './response-head.ts'

export const LF = 0x0a
export const CR = 0x0d

/** The result of a read: `more` bytes are needed, the head is `done`, or it has a `fault`. */
type HeadProgress = 'more' | 'done' | 'fault'

/** The bytes of a field value (RFC 9110 §5.5): every byte except control characters; the tab is allowed. */
const TEXT = '[\\t -~\\x80-\\xff]*'
/**
 * A request target: visible ASCII (RFC 9112 §3.2) and 8-bit bytes. The gate refuses 8-bit bytes with a description that names the
 * fault: they must be percent-encoded.
 */
const TARGET = '[!-~\\x80-\\xff]+'
/** The version in a first line, as one pattern per byte. The minor version may be 0 or 1. */
const VERSION = [...'HTTP/1', '\\.', '[01]']

const FIELD = [TOKEN, ':', TEXT, '\\r', '\\n']
const FIELDS = `(?:${FIELD.join('')})*`

/** A pattern for every beginning of these parts in sequence. Neighbouring parts match different bytes, so a match takes linear time. */
function beginningOf(parts: readonly string[]): string {
  return parts.reduceRight((rest, part) => `(?:${part}${rest})?`, '')
}

/** Every beginning of fields and the empty line after them. */
const BEGINNING = `${FIELDS}(?:\\r\\n?|${beginningOf(FIELD)})`

/** The patterns for a whole head and for its beginnings. `parts`: the parts of the first line. */
function headOf(...parts: readonly string[]): { readonly whole: RegExp; readonly beginning: RegExp } {
  const line = parts.length === 0 ? parts : [...parts, '\\r', '\\n']
  return {
    whole: new RegExp(`^${line.join('')}${FIELDS}\\r\\n$`),
    beginning: new RegExp(`^${beginningOf([...line, BEGINNING])}$`),
  }
}

/** The heads of RFC 9112 §3 and §4, and the fields alone (§5). */
const HEADS = {
  requests: headOf(TOKEN, ' ', TARGET, ' ', ...VERSION),
  responses: headOf(...VERSION, ' ', '[1-9]', '\\d', '\\d', `(?: ${TEXT})?`),
  trailers: headOf(),
}

const BLANKS = ' \t'
const EMPTY_LINE = '\r\n'
const END_OF_HEAD = Buffer.from('\r\n\r\n')

/**
 * The most bytes of empty lines that are skipped before a request: eight lines. RFC 9112 §2.2 tells servers to ignore them, because some
 * clients send one after every body. Without a bound, a client could occupy a connection with empty lines alone.
 */
const MOST_EMPTY = 8 * EMPTY_LINE.length

/** An incomplete line up to this size (bytes) is checked again with every packet. */
const SHORT_LINE = 1024

/**
 * Reads the heads of one connection, one after the other, strictly by RFC 9112.
 *
 * - Request line: token, one space, target, one space, `HTTP/1.0` or `HTTP/1.1`, CRLF.
 * - Status line: `HTTP/1.0` or `HTTP/1.1`, one space, three digits, optionally one space and text, CRLF.
 * - Each field: token, a colon without a space before it, text, CRLF. An empty line ends the head.
 * - Up to eight CRLF before a request are skipped (§2.2), and every CR or LF before a response: firmware sends them after a body.
 *
 * An incomplete head is checked as it arrives, from its last line on. A long line is checked again only when its size has doubled or it
 * ends with LF, so a head takes linear time in any number of packets.
 */
export class HeadReader {
  readonly #of: keyof typeof HEADS
  readonly #names: NameMemory | undefined
  /** How many bytes of the head have been read, including skipped line ends. 0 again after the head is taken. */
  length = 0
  /** A part of the first line has been read. Skipped line ends do not count. */
  begun = false
  /** Where the first line and the incomplete line begin, and the size of the incomplete line at its last check. */
  #from = 0
  #lineStart = 0
  #checked = 0
  /** The text of a `done` head. */
  #text = ''

  /** `trailers`: the section has no first line. */
  constructor(of: keyof typeof HEADS) {
    this.#of = of
    // V8 may keep the text of a whole head alive for one remembered name. Clients could exhaust memory that way, so only response names are
    // remembered.
    this.#names = of === 'responses' ? new NameMemory() : undefined
  }

  /**
   * Continues with the head. `start` is its first byte in `bytes`, on every call; `end` is where the received bytes end. Do not
   * call it after a fault: where the next head would begin is uncertain.
   */
  read(bytes: Buffer, start: number, end: number): HeadProgress {
    const progress =
      this.begun || this.#skipsEmpty(bytes, start, end) ? this.#readLines(bytes, start, end) : 'fault'
    if (progress === 'more') this.length = end - start
    return progress
  }

  /** Skips line ends before the head. False at a CR without LF. Empty lines beyond the bound stay, and the pattern refuses them. */
  #skipsEmpty(bytes: Buffer, start: number, end: number): boolean {
    let at = start + this.#from
    while (!this.begun && at < end) {
      const byte = bytes[at]
      if (this.#of === 'responses' && (byte === CR || byte === LF)) at += 1
      else if (this.#of === 'requests' && byte === CR && at - start < MOST_EMPTY) {
        if (at + 1 === end) break
        if (bytes[at + 1] !== LF) return false
        at += 2
      } else this.begun = true
    }
    this.#from = at - start
    this.#lineStart = this.#from
    return true
  }

  #readLines(bytes: Buffer, start: number, end: number): HeadProgress {
    if (!this.begun) return 'more'
    const { whole, beginning } = HEADS[this.#of]
    const from = start + this.#from
    const lineStart = start + this.#lineStart
    const after = this.#endIn(bytes, start, from)
    if (after <= end) {
      const text = bytes.toString('latin1', from, after)
      if (!whole.test(text)) return 'fault'
      this.#text = text
      this.length = after - start
      return 'done'
    }
    const size = end - lineStart
    if (size > SHORT_LINE && size < 2 * this.#checked && bytes[end - 1] !== LF) return 'more'
    const rest = bytes.toString('latin1', lineStart, end)
    this.#checked = rest.length - 1 - rest.lastIndexOf('\n')
    this.#lineStart = end - start - this.#checked
    return (lineStart === from ? beginning : HEADS.trailers.beginning).test(rest) ? 'more' : 'fault'
  }

  /** The position after the head; `Infinity` if its end has not arrived. */
  #endIn(bytes: Buffer, start: number, from: number): number {
    if (this.#of === 'trailers' && bytes[from] === CR && bytes[from + 1] === LF)
      return from + EMPTY_LINE.length
    // The search begins three bytes before the new ones, because earlier packets may have brought a part of the end.
    const last = bytes.indexOf(END_OF_HEAD, Math.max(from, start + this.length - (END_OF_HEAD.length - 1)))
    return last < 0 ? Number.POSITIVE_INFINITY : last + END_OF_HEAD.length
  }

  /** Returns the request head after `done`, and starts the next one. */
  takeRequest(): RequestHeadText {
    const text = this.#takeText()
    const methodEnd = text.indexOf(' ')
    const targetEnd = text.indexOf(' ', methodEnd + 1)
    return {
      method: text.slice(0, methodEnd),
      target: text.slice(methodEnd + 1, targetEnd),
      version: versionAt(text, targetEnd + 1),
      fields: this.#fieldsIn(text),
    }
  }

  /** Returns the response head after `done`, and starts the next one. */
  takeResponse(): ResponseHeadText {
    const text = this.#takeText()
    return {
      version: versionAt(text, 0),
      status: text.slice(STATUS, STATUS + 3),
      reason: text.slice(STATUS + 4, text.indexOf(EMPTY_LINE)),
      fields: this.#fieldsIn(text),
    }
  }

  #takeText(): string {
    const text = this.#text
    this.length = 0
    this.begun = false
    this.#from = 0
    this.#checked = 0
    this.#text = ''
    return text
  }

  #fieldsIn(text: string): Fields {
    const fields: string[] = []
    const last = text.length - EMPTY_LINE.length
    for (let at = text.indexOf('\n') + 1; at < last; ) {
      const colon = text.indexOf(':', at)
      const end = text.indexOf('\r', colon)
      const name = this.#names?.at(fields.length / 2, text, at, colon) ?? text.slice(at, colon)
      let first = colon + 1
      let after = end
      while (first < after && BLANKS.includes(text.charAt(first))) first += 1
      while (first < after && BLANKS.includes(text.charAt(after - 1))) after -= 1
      if (after < end && this.#of === 'requests' && keepsBlanks(name, text.slice(after, end))) after = end
      fields.push(name, text.slice(first, after))
      at = end + EMPTY_LINE.length
    }
    return fields
  }
}

/** The position of the status in a status line. */
const STATUS = 'HTTP/1.1 '.length

/** The version that begins at `start`. */
function versionAt(line: string, start: number): '1.0' | '1.1' {
  return line.startsWith('HTTP/1.0', start) ? '1.0' : '1.1'
}

const TRANSFER_ENCODING = /^transfer-encoding$/i

/**
 * Whether the blanks after a value stay in it: if they include a tab after a request's transfer coding. The gate then refuses the coding as
 * unknown. Some parsers, such as Node's, do not recognize `chunked` with a tab after it: a device with such a parser would miss the body.
 */
function keepsBlanks(name: string, blanks: string): boolean {
  return blanks.includes('\t') && TRANSFER_ENCODING.test(name)
}

/** Whether the bytes between two messages are only line ends. Some firmware sends them, and RFC 9112 §2.2 allows to ignore them. */
export function onlyLineEnds(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if (bytes[at] !== CR && bytes[at] !== LF) return false
  return true
}
