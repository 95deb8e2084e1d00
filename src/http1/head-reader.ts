import { type Fields, TOKEN } from '../http/fields.ts'
import { NameMemory } from './head-memory.ts'
import type { RequestHeadText } from './request-head.ts'
import type { ResponseHeadText } from './response-head.ts'

export const LF = 0x0a
export const CR = 0x0d

/** How far a head has been read: `more` bytes are needed, it is `done`, or it holds a `fault`. */
export type HeadProgress = 'more' | 'done' | 'fault'

/** The bytes of a field value (RFC 9110 §5.5): every byte except control characters; the tab is allowed. */
const TEXT = '[\\t -~\\x80-\\xff]*'
/**
 * A request target: visible ASCII (RFC 9112 §3.2) and 8-bit bytes. The gate refuses 8-bit bytes with a description that names the
 * fault: they must be percent-encoded.
 */
const TARGET = '[!-~\\x80-\\xff]+'
/** The version in a first line, byte by byte. The minor version may be 0 or 1. */
const VERSION = [...'HTTP/1', '\\.', '[01]']

const FIELD = [TOKEN, ':', TEXT, '\\r', '\\n']
const FIELDS = `(?:${FIELD.join('')})*`

/** What begins with some of these patterns, one after the other. No two neighbours match the same byte, so it takes linear time. */
function beginningOf(parts: readonly string[]): string {
  return parts.reduceRight((rest, part) => `(?:${part}${rest})?`, '')
}

/** Fields and the empty line, or a part of them. */
const BEGINNING = `${FIELDS}(?:\\r\\n?|${beginningOf(FIELD)})`

/** A head as a pattern, and what it may begin with. `parts`: of the first line. */
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
 * The most bytes of empty lines skipped before a request: eight lines. RFC 9112 §2.2 tells servers to ignore them, because some
 * clients send one after every body. The bound keeps a client from occupying a connection with empty lines alone.
 */
const MOST_EMPTY = 8 * EMPTY_LINE.length

/** An incomplete line up to this size (bytes) is checked with every packet. */
const SHORT_LINE = 1024

/**
 * Reads the heads of one connection, one after the other, strictly by RFC 9112.
 *
 * - Request line: token, one space, target, one space, `HTTP/1.0` or `HTTP/1.1`, CRLF.
 * - Status line: `HTTP/1.0` or `HTTP/1.1`, one space, three digits, optionally one space and text, CRLF.
 * - Each field: token, a colon without a space before it, text, CRLF. An empty line ends the head.
 * - A few CRLF before a request are skipped (§2.2), and every CR or LF before a response: firmware sends them after a body.
 *
 * A part of a head is checked as it arrives, from its last line on. A long line is checked when it has doubled or seems to end, so a
 * head takes linear time in any number of packets.
 */
export class HeadReader {
  readonly #of: keyof typeof HEADS
  readonly #names: NameMemory | undefined
  /** How many bytes of the head have been read, skipped line ends included. 0 again after it is taken. */
  length = 0
  /** A part of the first line has been read. Line ends before it do not count. */
  begun = false
  /** Where the first line begins, and the line that is not complete; how much of that one there was at the last check. */
  #from = 0
  #lineStart = 0
  #checked = 0
  /** The head that is done. */
  #text = ''

  /** `trailers`: the section has no first line. */
  constructor(of: keyof typeof HEADS) {
    this.#of = of
    // V8 may keep a whole head in memory for one remembered name. Clients could exhaust memory so: only responses get a memory.
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

  /** Skips line ends before the head. False after a CR without its LF. One too many is left to the pattern, which has none. */
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

  /** Where the head ends; infinite if its end has not arrived. */
  #endIn(bytes: Buffer, start: number, from: number): number {
    if (this.#of === 'trailers' && bytes[from] === CR && bytes[from + 1] === LF)
      return from + EMPTY_LINE.length
    // What had arrived before may hold all of it but its last byte.
    const last = bytes.indexOf(END_OF_HEAD, Math.max(from, start + this.length - (END_OF_HEAD.length - 1)))
    return last < 0 ? Number.POSITIVE_INFINITY : last + END_OF_HEAD.length
  }

  /** Returns the request head that is done and starts the next head. */
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

  /** Returns the response head that is done and starts the next head. */
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

/** Where the status begins in a status line. */
const STATUS = 'HTTP/1.1 '.length

/** The version that begins at `start`. */
function versionAt(line: string, start: number): '1.0' | '1.1' {
  return line.startsWith('HTTP/1.0', start) ? '1.0' : '1.1'
}

const TRANSFER_ENCODING = /^transfer-encoding$/i

/**
 * A tab after a request's transfer coding stays in the value, so the gate refuses the request for an unknown coding. Some
 * parsers, such as Node's, do not recognize `chunked` with a tab after it: a device with such a parser would miss the body.
 */
function keepsBlanks(name: string, blanks: string): boolean {
  return blanks.includes('\t') && TRANSFER_ENCODING.test(name)
}

/** Whether the bytes between two messages are only line ends. Some firmware sends them; RFC 9112 §2.2 allows to ignore them. */
export function onlyLineEnds(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if (bytes[at] !== CR && bytes[at] !== LF) return false
  return true
}
