import { type Fields, fieldValues, listMembers, withoutBlanks } from '../http/fields.ts'
import { CR, LF } from './bytes.ts'
import { endsWithHead, type Http1ResponseHead, meaningOfResponse } from './response-head.ts'

const STATUS_LINE = /^HTTP\/\d+(?:\.\d+)?[ \t]+([1-9]\d\d)(?:[ \t]+([^\n]*))?$/i
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what the device must not have sent
const CONTROL = /[\x00-\x08\x0a-\x1f\x7f]/g

/** Fields taken from one head. */
const MOST_FIELDS = 1000

/**
 * Reads a response head, without the empty line at its end, as the device meant it: bare LF or CR CR LF for CRLF, a
 * status line in any case and without a reason phrase, space before a colon, folded lines (RFC 9112 §5.2), control
 * characters in values (a space instead, RFC 9110 §5.5), lines that are no field (dropped: no protocol carries them).
 * The connection does not persist.
 *
 * `malformed` where a guess could show the client a wrong body: what does not begin like HTTP, lengths that differ or are
 * no number, and transfer codings other than `chunked` where a body follows. `too-large`: more than a thousand fields.
 * `method` is that of the request.
 */
export function readTolerantly(text: string, method: string): Http1ResponseHead | 'malformed' | 'too-large' {
  const [first = '', ...lines] = text.split('\n').map(withoutReturns)
  const match = STATUS_LINE.exec(first)
  if (match === null) return 'malformed'
  const fields = readFields(lines)
  if (fields.length > 2 * MOST_FIELDS) return 'too-large'
  const target = match[1] ?? ''
  const framed = withOneFraming(fields, endsWithHead(method, Number(target)))
  if (framed === undefined) return 'malformed'
  const reason = printable(match[2] ?? '')
  const head = meaningOfResponse({ method: '', target, version: '1.1', reason, fields: framed }, method)
  return head === undefined ? 'malformed' : { ...head, persists: false }
}

/**
 * Finds where a head ends and its body begins: at the first empty line, however its ends are written, and line ends in front do not
 * count. Every byte is looked at once, however the head is cut into packets: to begin anew with each of them takes a time that
 * grows with the square of their number.
 */
export class TolerantHeadEnd {
  /** Up to where it has been looked for. All places are counted from the first byte. */
  #at = 0
  #firstLine: number | undefined
  /** Where the line before ends. */
  #lineEnd = 0
  /** Nothing but CR stands in the line that is being read. */
  #empty = false

  /** Forgets a head that has not been found whole. */
  reset(): void {
    this.#at = 0
    this.#firstLine = undefined
    this.#empty = false
  }

  /** Where the first line begins; where there is none yet, the end of what has come. */
  get from(): number {
    return this.#firstLine ?? this.#at
  }

  /** Looks on; the head begins at `start`, also when some of it has been looked at before, and has come up to `end`. */
  find(
    bytes: Buffer,
    start: number,
    end: number,
  ): { readonly head: number; readonly body: number } | undefined {
    for (let at = start + this.#at; at < end; at += 1) {
      const byte = bytes[at]
      if (byte === CR || (byte === LF && this.#firstLine === undefined)) continue
      if (byte !== LF) {
        this.#firstLine ??= at - start
        this.#empty = false
      } else if (this.#empty) return { head: start + this.#lineEnd, body: at + 1 }
      else {
        this.#lineEnd = at - start
        this.#empty = true
      }
    }
    this.#at = end - start
    return undefined
  }
}

const HTTP = 'http/'

/** Whether what has come of a head may be the beginning of one. */
export function mayBeTolerantHead(bytes: Buffer, start: number, end: number): boolean {
  const text = bytes.toString('latin1', start, Math.min(start + HTTP.length, end)).toLowerCase()
  return HTTP.startsWith(text)
}

/** A line without the CRs at its end. A regular expression takes quadratic time: six seconds for 60 KB of CRs. */
function withoutReturns(line: string): string {
  let end = line.length
  while (line[end - 1] === '\r') end -= 1
  return line.slice(0, end)
}

function readFields(lines: readonly string[]): string[] {
  const fields: string[] = []
  let folds = false
  for (const line of lines) {
    if (/^[ \t]/.test(line)) {
      // Folded behind a dropped line, it is dropped with it: else it would change another field.
      if (folds) fields.push(withoutBlanks(`${fields.pop()} ${printable(line)}`))
      continue
    }
    const colon = line.indexOf(':')
    const name = withoutBlanks(line.slice(0, Math.max(colon, 0)))
    folds = TOKEN.test(name)
    if (folds) fields.push(name, printable(line.slice(colon + 1)))
  }
  return fields
}

/** Leaves one way to tell where the body ends (RFC 9112 §6.3); undefined where there is none. */
function withOneFraming(fields: readonly string[], bodiless: boolean): string[] | undefined {
  const codings = listMembers(fieldValues(fields, 'transfer-encoding')).filter((name) => name !== 'identity')
  if (!bodiless && codings.some((coding) => coding !== 'chunked')) return undefined
  const chunked = codings.length > 0
  // Chunks say themselves how long they are; a length beside them is a leftover.
  const lengths = chunked ? [] : listMembers(fieldValues(fields, 'content-length'))
  if (!chunked && hasField(fields, 'content-length') && !isOneLength(lengths)) return undefined
  const framing = chunked ? 'chunked' : lengths[0]
  const framedBy = chunked ? 'transfer-encoding' : 'content-length'
  const kept: string[] = []
  let placed = false
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    const lower = name.toLowerCase()
    if (lower !== 'transfer-encoding' && lower !== 'content-length') kept.push(name, fields[i + 1] ?? '')
    else if (lower === framedBy && !placed) {
      kept.push(name, framing ?? '')
      placed = true
    }
  }
  return kept
}

function hasField(fields: Fields, name: string): boolean {
  return fieldValues(fields, name).length > 0
}

/** Repeated, but the same number throughout (RFC 9110 §8.6). */
function isOneLength(lengths: readonly string[]): boolean {
  return new Set(lengths).size === 1 && /^\d{1,15}$/.test(lengths[0] ?? '')
}

/** A value that every later parser takes: CR, LF and NUL must not survive, other control characters better not. */
function printable(value: string): string {
  return withoutBlanks(value.replace(CONTROL, ' '))
}
