import { fieldValues, isToken, listMembers, withoutBlanks } from '../http/fields.ts'
import { CR, LF } from './head-reader.ts'
import { type Http1ResponseHead, interpretResponse } from './response-head.ts'
import { endsWithHead } from './response-writer.ts'

const STATUS_LINE = /^HTTP\/\d+(?:\.\d+)?[ \t]+([1-9]\d\d)(?:[ \t]+([^\n]*))?$/i
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern finds the control characters that a device sends
const CONTROL = /[\x00-\x08\x0a-\x1f\x7f]/g

/**
 * Reads a response head with the deviations of old firmware. `text` ends before the empty line. `method`: that of the request. The
 * connection does not persist after it. These deviations are accepted:
 *
 * - LF or CR CR LF as a line end,
 * - a status line in any letter case, and without a reason phrase,
 * - blanks before a colon, and folded lines (RFC 9112 §5.2),
 * - control characters in values, which become spaces (RFC 9110 §5.5),
 * - lines that are not a field, which are dropped.
 *
 * Undefined if the client could get a wrong body: the first line is not HTTP, the lengths differ or are not a number, or a body has a
 * transfer coding other than `chunked`.
 */
export function readTolerantly(text: string, method: string): Http1ResponseHead | undefined {
  const [first = '', ...lines] = text.split('\n').map(withoutReturns)
  const match = STATUS_LINE.exec(first)
  if (match === null) return undefined
  const fields = readFields(lines)
  const status = match[1] ?? ''
  const framed = withOneFraming(fields, endsWithHead(method, Number(status)))
  if (framed === undefined) return undefined
  const reason = printable(match[2] ?? '')
  const head = interpretResponse({ version: '1.1', status, reason, fields: framed }, method)
  return head === undefined ? undefined : { ...head, persists: false }
}

/**
 * Finds the end of a head: the first empty line, with any kind of line end. Line ends before the head do not count. Every byte is read
 * once: a search that restarts with each packet would take quadratic time.
 */
export class TolerantHeadEnd {
  /** How many bytes have been searched. All positions in this object are relative to `start` of `find`. */
  #at = 0
  #firstLine: number | undefined
  /** The position of the previous line's LF. */
  #lineEnd = 0
  /** The current line contains nothing but CRs so far. */
  #empty = false

  /** Where the first line begins; until then, the number of bytes searched. */
  get from(): number {
    return this.#firstLine ?? this.#at
  }

  /** Continues the search. `start` is the first byte in `bytes`, on every call; `end` is where the received bytes end. */
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

/** Whether the received bytes can be the beginning of a response head. */
export function mayBeTolerantHead(bytes: Buffer, start: number, end: number): boolean {
  const text = bytes.toString('latin1', start, Math.min(start + HTTP.length, end)).toLowerCase()
  return HTTP.startsWith(text)
}

/** A line without the CRs at its end. A regular expression would take quadratic time: six seconds for 60 KB of CRs. */
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
      // A line that continues a dropped line is dropped, too. Otherwise it would extend another field.
      if (folds) fields.push(withoutBlanks(`${fields.pop()} ${printable(line)}`))
      continue
    }
    const colon = line.indexOf(':')
    const name = withoutBlanks(line.slice(0, Math.max(colon, 0)))
    folds = isToken(name)
    if (folds) fields.push(name, printable(line.slice(colon + 1)))
  }
  return fields
}

/** Keeps one framing field and removes the others (RFC 9112 §6.3). Undefined if the end of the body is uncertain. */
function withOneFraming(fields: readonly string[], bodiless: boolean): string[] | undefined {
  const codings = listMembers(fieldValues(fields, 'transfer-encoding')).filter((name) => name !== 'identity')
  if (!bodiless && codings.some((coding) => coding !== 'chunked')) return undefined
  const chunked = codings.length > 0
  // With chunks, a `Content-Length` is ignored (RFC 9112 §6.3).
  const values = chunked ? [] : fieldValues(fields, 'content-length')
  const lengths = listMembers(values)
  if (values.length > 0 && !isOneLength(lengths)) return undefined
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

/** Whether all values are the same number. RFC 9110 §8.6 allows a repeated length. */
function isOneLength(lengths: readonly string[]): boolean {
  return new Set(lengths).size === 1 && /^\d{1,15}$/.test(lengths[0] ?? '')
}

/** Replaces each control character except the tab by a space: some parsers take CR, LF or NUL for a line end. */
function printable(value: string): string {
  return withoutBlanks(value.replace(CONTROL, ' '))
}
