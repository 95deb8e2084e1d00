import { connectionMembers, type Fields } from './fields.ts'

/** The request header fields that the sidecar evaluates, gathered in one pass when the head is read. */
export interface HeadSurvey {
  readonly authorization: readonly string[]
  /** The members of all `Connection` fields, in lower case. */
  readonly connection: readonly string[]
  readonly contentLength: readonly string[]
  readonly expect: readonly string[]
  readonly forwardedFor: readonly string[]
  readonly host: readonly string[]
  readonly requestId: readonly string[]
  readonly transferEncoding: readonly string[]
  readonly upgrade: readonly string[]
  readonly via: readonly string[]
  /** A name equals a guarded one except for `_` in place of `-`. CGI firmware reads both as the same field. */
  readonly underscoreTwin: boolean
  /** Bytes of all names and values. */
  readonly size: number
}

/**
 * How the body of a request is delimited. `null`: there is no body. A number: its length in bytes. `chunked`: by chunks, or in
 * HTTP/2 by the end of the stream. `broken`: two parsers could disagree (RFC 9112 §6.3).
 */
export type RequestFraming = null | number | 'chunked' | 'broken'

const NONE: readonly string[] = []

/** Names that the sidecar evaluates or sets. */
const GUARDED = new Set([
  'authorization',
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'forwarded',
  'via',
  'x-real-ip',
  'x-request-id',
])

function isTwin(name: string): boolean {
  if (!name.includes('_')) return false
  const plain = name.toLowerCase().replaceAll('_', '-')
  return GUARDED.has(plain) || plain.startsWith('x-forwarded-')
}

/** Adds a value to the list. Most lists hold one value, so the first costs no copy. */
function and(values: readonly string[], value: string): readonly string[] {
  return values.length === 0 ? [value] : [...values, value]
}

export function surveyFields(fields: Fields): HeadSurvey {
  let authorization = NONE
  let connection = NONE
  let contentLength = NONE
  let expect = NONE
  let forwardedFor = NONE
  let host = NONE
  let requestId = NONE
  let transferEncoding = NONE
  let upgrade = NONE
  let via = NONE
  let underscoreTwin = false
  let size = 0
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    const value = fields[i + 1] ?? ''
    size += name.length + value.length
    // The length alone distinguishes most names.
    switch (name.length) {
      case 3:
        if (name.toLowerCase() === 'via') via = and(via, value)
        break
      case 4:
        if (name.toLowerCase() === 'host') host = and(host, value)
        break
      case 6:
        if (name.toLowerCase() === 'expect') expect = and(expect, value)
        break
      case 7:
        if (name.toLowerCase() === 'upgrade') upgrade = and(upgrade, value)
        break
      case 10:
        if (name.toLowerCase() === 'connection') {
          const members = connectionMembers(value)
          connection = connection.length === 0 ? members : [...connection, ...members]
        }
        break
      case 12:
        if (name.toLowerCase() === 'x-request-id') requestId = and(requestId, value)
        break
      case 13:
        if (name.toLowerCase() === 'authorization') authorization = and(authorization, value)
        break
      case 14:
        if (name.toLowerCase() === 'content-length') contentLength = and(contentLength, value)
        break
      case 15:
        if (name.toLowerCase() === 'x-forwarded-for') forwardedFor = and(forwardedFor, value)
        break
      case 17:
        if (name.toLowerCase() === 'transfer-encoding') transferEncoding = and(transferEncoding, value)
    }
    if (isTwin(name)) underscoreTwin = true
  }
  return {
    authorization,
    connection,
    contentLength,
    expect,
    forwardedFor,
    host,
    requestId,
    transferEncoding,
    upgrade,
    via,
    underscoreTwin,
    size,
  }
}

const LENGTH = /^[0-9]{1,15}$/

/** Decides how the body of a request is delimited; no other code does. `endsWithHead`: the HTTP/2 stream ended with its head. */
export function requestFraming(
  version: '1.0' | '1.1' | '2',
  { contentLength, transferEncoding }: HeadSurvey,
  endsWithHead: boolean,
): RequestFraming {
  const [length] = contentLength
  const [coding] = transferEncoding
  if (contentLength.length > 1 || (length !== undefined && !LENGTH.test(length))) return 'broken'
  if (version === '2') {
    if (coding !== undefined) return 'broken'
    if (endsWithHead) return null
    return length === undefined ? 'chunked' : Number(length)
  }
  if (coding === undefined) return length === undefined ? null : Number(length)
  const plain = transferEncoding.length === 1 && coding.toLowerCase() === 'chunked'
  return plain && length === undefined && version === '1.1' ? 'chunked' : 'broken'
}
