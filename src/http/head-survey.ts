import { asCgi, connectionMembers, type Fields, isHopByHop } from './fields.ts'

/** The fields whose values are gathered. Their names differ in length, so the length of a name selects the only candidate. */
const GATHERED = [
  { name: 'via', as: 'via' },
  { name: 'host', as: 'host' },
  { name: 'expect', as: 'expect' },
  { name: 'upgrade', as: 'upgrade' },
  { name: 'connection', as: 'connection' },
  { name: 'destination', as: 'destination' },
  { name: 'x-request-id', as: 'requestId' },
  { name: 'authorization', as: 'authorization' },
  { name: 'content-length', as: 'contentLength' },
  { name: 'x-forwarded-for', as: 'forwardedFor' },
  { name: 'transfer-encoding', as: 'transferEncoding' },
] as const

const BY_LENGTH = new Map(GATHERED.map((field) => [field.name.length, field]))

/**
 * The values of the request fields that the sidecar evaluates, gathered in one pass when the head is read. For `Connection` they are its
 * members in lower case.
 */
export interface HeadSurvey extends Readonly<Record<(typeof GATHERED)[number]['as'], readonly string[]>> {
  /** The head has a field that a CGI program would take for a guarded one, although its name differs. */
  readonly twin: boolean
  /** A browser may have sent the request to show its response as a page: see `isNavigation`. */
  readonly mayNavigate: boolean
  /** Bytes of all names and values. */
  readonly size: number
}

/**
 * How the body of a request is delimited. `null`: there is no body. A number: its length in bytes. `chunked`: by chunks, or in
 * HTTP/2 by the end of the stream. `broken`: two parsers could disagree (RFC 9112 §6.3).
 */
export type RequestFraming = null | number | 'chunked' | 'broken'

const NONE: readonly string[] = []

/** The names of fields that the sidecar evaluates or sets. Hop-by-hop fields, which it removes, are guarded, too. */
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

/** Only a name with such a byte can be a twin: guarded names have only letters, digits and hyphens. */
const ODD = /[^A-Za-z0-9-]/

function isTwin(name: string): boolean {
  if (!ODD.test(name)) return false
  const seen = asCgi(name)
  return GUARDED.has(seen) || seen.startsWith('x-forwarded-') || isHopByHop(seen)
}

/** The length of the name `Accept`. Other names of this length do no harm, because `isNavigation` reads the field itself. */
const ACCEPT = 6
const HTML = /text\/html/i

export function surveyFields(fields: Fields): HeadSurvey {
  const survey = {
    authorization: NONE,
    connection: NONE,
    contentLength: NONE,
    destination: NONE,
    expect: NONE,
    forwardedFor: NONE,
    host: NONE,
    requestId: NONE,
    transferEncoding: NONE,
    upgrade: NONE,
    via: NONE,
    twin: false,
    mayNavigate: false,
    size: 0,
  }
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    const value = fields[i + 1] ?? ''
    survey.size += name.length + value.length
    const gathered = BY_LENGTH.get(name.length)
    if (gathered !== undefined && name.toLowerCase() === gathered.name) {
      const before = survey[gathered.as]
      const values = gathered.as === 'connection' ? connectionMembers(value) : [value]
      survey[gathered.as] = before.length === 0 ? values : [...before, ...values]
    }
    if (value === 'navigate' || (name.length === ACCEPT && HTML.test(value))) survey.mayNavigate = true
    if (isTwin(name)) survey.twin = true
  }
  return survey
}

const LENGTH = /^[0-9]{1,15}$/

/** Decides how the body of a request is delimited. No other code decides this. `endsWithHead`: the HTTP/2 stream ended with its head. */
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
