import { type Fields, fieldValues, listMembers, withoutBlanks } from '../http/fields.ts'
import { endsWithHead } from './answer-head.ts'
import { DeviceFault } from './failure.ts'

/** A response head as any parser reads it the same way. */
export interface LenientHead {
  readonly status: number
  readonly reason: string
  readonly fields: Fields
}

const STATUS_LINE = /^HTTP\/\d+(?:\.\d+)?[ \t]+([1-9]\d\d)(?:[ \t]+([^\n]*))?$/i
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what the device must not have sent
const CONTROL = /[\x00-\x08\x0a-\x1f\x7f]/g

/** Fields taken from one head. More would be lost without a word in Node's parser, which keeps the first thousand. */
const MOST_FIELDS = 1000

/**
 * Reads a response head, without the empty line at its end, as the device meant it: bare LF or CR CR LF for CRLF, a
 * status line in any case and without a reason phrase, space before a colon, folded lines (RFC 9112 §5.2), control
 * characters in values (a space instead, RFC 9110 §5.5), lines that are no field (dropped: no protocol carries them).
 *
 * Fails where a guess could show the client a wrong body: what does not begin like HTTP, lengths that differ or are
 * no number, and transfer codings other than `chunked` where a body follows. `method` is that of the request.
 */
export function readLeniently(text: string, method: string): LenientHead {
  const [first = '', ...lines] = text.split('\n').map(withoutReturns)
  const match = STATUS_LINE.exec(first)
  if (match === null) throw new DeviceFault('http_protocol_error')
  const fields = readFields(lines)
  if (fields.length > 2 * MOST_FIELDS) throw new DeviceFault('http_response_header_section_size')
  const status = Number(match[1])
  const framed = withOneFraming(fields, endsWithHead(method, status))
  return { status, reason: printable(match[2] ?? ''), fields: framed }
}

/** The head in bytes, with the empty line. The version is that of the sidecar's own parser, not the device's. */
export function writeStrictly({ status, reason, fields }: LenientHead): Buffer {
  let text = `HTTP/1.1 ${status} ${reason}\r\n`
  for (let i = 0; i + 1 < fields.length; i += 2) text += `${fields[i]}: ${fields[i + 1]}\r\n`
  return Buffer.from(`${text}\r\n`, 'latin1')
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

/** Leaves one way to tell where the body ends (RFC 9112 §6.3). */
function withOneFraming(fields: readonly string[], bodyless: boolean): string[] {
  const codings = listMembers(fieldValues(fields, 'transfer-encoding')).filter((name) => name !== 'identity')
  if (!bodyless && codings.some((coding) => coding !== 'chunked'))
    throw new DeviceFault('http_protocol_error')
  const chunked = codings.length > 0
  // Chunks say themselves how long they are; a length beside them is a leftover.
  const lengths = chunked ? [] : listMembers(fieldValues(fields, 'content-length'))
  if (!chunked && hasField(fields, 'content-length') && !isOneLength(lengths)) {
    throw new DeviceFault('http_protocol_error')
  }
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
