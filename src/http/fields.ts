/**
 * Header fields as they are on the wire: name, value, name, value, in order. Repeated fields and letter case are kept. HTTP/1 and HTTP/2
 * are both read into this form and written from it, so no field is lost.
 */
export type Fields = readonly string[]

const NONE: readonly string[] = []

/** All values of a field, in order. `name` is in lower case. */
export function fieldValues(fields: Fields, name: string): readonly string[] {
  let values: string[] | undefined
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const candidate = fields[i] ?? ''
    // The length is compared first, because most names differ in it.
    if (candidate.length !== name.length || candidate.toLowerCase() !== name) continue
    values ??= []
    values.push(fields[i + 1] ?? '')
  }
  return values ?? NONE
}

/** The fields as the lines of an HTTP/1 head, each with its line end. */
export function fieldLines(fields: Fields): string {
  let lines = ''
  for (let i = 0; i + 1 < fields.length; i += 2) lines += `${fields[i]}: ${fields[i + 1]}\r\n`
  return lines
}

/** The names of the fields, in lower case. */
export function fieldNamesIn(fields: Fields): ReadonlySet<string> {
  return new Set(fields.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase()))
}

/** The fields for which `keeps` returns true, in order. `keeps` receives the name in lower case. */
export function keepFields(fields: Fields, keeps: (name: string, value: string) => boolean): string[] {
  const kept: string[] = []
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    const value = fields[i + 1] ?? ''
    if (keeps(name.toLowerCase(), value)) kept.push(name, value)
  }
  return kept
}

/** The fields as Node takes them: a repeated field is a list. With `kept`, names that differ in letter case are different fields. */
export function groupFields(fields: Fields, letterCase: 'kept' | 'lower'): Record<string, string | string[]> {
  const grouped: Record<string, string | string[]> = Object.create(null)
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const original = fields[i] ?? ''
    const name = letterCase === 'lower' ? original.toLowerCase() : original
    const before = grouped[name]
    const value = fields[i + 1] ?? ''
    grouped[name] = before === undefined ? value : [...[before].flat(), value]
  }
  return grouped
}

/** The members of a comma-separated list field, without the empty ones (RFC 9110 §5.6.1). */
export function listMembers(values: readonly string[], letterCase: 'kept' | 'lower' = 'lower'): string[] {
  const members = values
    .flatMap((value) => value.split(','))
    .map(withoutBlanks)
    .filter((member) => member !== '')
  return letterCase === 'kept' ? members : members.map((member) => member.toLowerCase())
}

/** Whether the body of a message is encoded. `identity` names no coding (RFC 9110 §8.4.1), and some programs send it. */
export function isEncoded(fields: Fields): boolean {
  const codings = fieldValues(fields, 'content-encoding')
  return codings.length > 0 && listMembers(codings).some((coding) => coding !== 'identity')
}

const CLOSE: readonly string[] = ['close']
const KEEP_ALIVE: readonly string[] = ['keep-alive']

/** The members of one `Connection` field, in lower case. Nearly every message has `keep-alive` or `close`. */
export function connectionMembers(value: string): readonly string[] {
  if (value === 'keep-alive') return KEEP_ALIVE
  return value === 'close' ? CLOSE : listMembers([value])
}

/** Whether the sender of a message keeps the connection open (RFC 9112 §9.3). `connection`: its options in lower case. */
export function persists(version: '1.0' | '1.1', connection: readonly string[]): boolean {
  return !connection.includes('close') && (version === '1.1' || connection.includes('keep-alive'))
}

/**
 * The name of a field as a CGI program sees it (RFC 3875 §4.1.18), with `-` in place of `_`: lighttpd and BusyBox httpd replace every byte
 * that is no letter or digit by `_`. By this name Postern finds the fields that it sets, guards or drops.
 */
export function asCgi(name: string): string {
  return name.toLowerCase().replace(PUNCTUATION, '-')
}

/** The pattern leaves out `-`, which would be replaced by itself. So most names have no match. */
const PUNCTUATION = /[^a-z0-9-]/g

/** A regular expression for a token (RFC 9110 §5.6.2), as text. */
export const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+"

const WHOLE_TOKEN = new RegExp(`^${TOKEN}$`)

/** Whether a text is a token, which is the grammar of field names, methods, codings and cookie names. */
export function isToken(text: string): boolean {
  return WHOLE_TOKEN.test(text)
}

const DIGITS = /^[0-9]+$/

/** The value of a `Content-Length` (RFC 9110 §8.6); undefined if it is not a number, or is 2^53 or more. */
export function lengthIn(value: string): number | undefined {
  const length = DIGITS.test(value) ? Number(value) : Number.NaN
  return Number.isSafeInteger(length) ? length : undefined
}

/**
 * A value without leading and trailing blanks (RFC 9110 §5.5). `trim` would also remove 0xA0, which is no blank in HTTP and may be a byte
 * of a UTF-8 character.
 */
export function withoutBlanks(value: string): string {
  let start = 0
  let end = value.length
  while (isBlank(value[start])) start += 1
  while (end > start && isBlank(value[end - 1])) end -= 1
  return value.slice(start, end)
}

/** Whether a character is a blank of HTTP: space or tab (RFC 9110 §5.6.3). */
export function isBlank(character: string | undefined): boolean {
  return character === ' ' || character === '\t'
}

/**
 * Whether a field belongs to one connection, not to the message (RFC 9110 §7.6.1). `proxy` is no standard field, but a CGI program would
 * take it for the address of its outgoing proxy (httpoxy, CVE-2016-5385). A `Set` would be slower than these comparisons, because V8 would
 * have to internalize the name first.
 */
export function isHopByHop(lowerName: string): boolean {
  switch (lowerName) {
    case 'connection':
    case 'keep-alive':
    case 'te':
    case 'trailer':
    case 'transfer-encoding':
    case 'upgrade':
    case 'expect':
    case 'http2-settings':
    case 'proxy':
      return true
    default:
      return lowerName.startsWith('proxy-') && lowerName !== 'proxy-status'
  }
}

/** The name of this proxy in `Via` (RFC 9110 §7.6.3) and `Proxy-Status` (RFC 9209). A pseudonym hides the host name. */
export const PSEUDONYM = 'postern'
