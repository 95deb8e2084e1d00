import type { Endpoint } from '../http/admission.ts'
import type { Fields } from '../http/fields.ts'
import { codeOf, reasonOf } from '../system/setup-error.ts'

export interface Question {
  readonly endpoint: Endpoint
  readonly method: 'GET' | 'HEAD' | 'OPTIONS' | 'POST'
  /** Sent byte for byte. */
  readonly path: string
  /** The fields besides `Host` and `Content-Length`. */
  readonly fields: Fields
  /** The values of the `Host` fields over HTTP/1.1. Default: one field with the host of the server. */
  readonly hosts?: readonly string[]
  readonly body?: string
  /**
   * `malformed`: the request is no valid HTTP, so nothing is known about the fields of its response. `respelled`: a server may take the
   * path for the token endpoint or for any other, so the response may state either limit.
   */
  readonly oddity?: 'malformed' | 'respelled'
  /** The server itself must refuse the request, so the response is not one of the device. */
  readonly refused?: true
  /** The request in words, without secrets, for departures. */
  readonly what: string
}

/** A request, the status that it gets when it passes the limit, and its response. */
export interface Asked {
  readonly question: Question
  readonly expected: number
  readonly received: Received
}

export const ENDPOINTS: readonly Endpoint[] = ['api', 'oauth']

export const TOKEN_PATH = '/oauth/token'

type Form = Readonly<Record<string, string>>

/** A form to the token endpoint. */
export function tokenRequest(form: Form, what: string, path: string = TOKEN_PATH): Question {
  const fields = ['Content-Type', 'application/x-www-form-urlencoded']
  const body = new URLSearchParams(form).toString()
  return { endpoint: 'oauth', method: 'POST', path, fields, body, what: `POST ${path} ${what}` }
}

/** The parameters of a password grant. */
export function passwordForm(password: string): Form {
  return { grant_type: 'password', password }
}

export function refreshGrant(refreshToken: string, what = 'with the refresh token'): Question {
  return tokenRequest({ grant_type: 'refresh_token', refresh_token: refreshToken }, what)
}

/**
 * A request that every server with this API refuses with 400, without checking a password or a token. No server knows this grant type: for
 * a known one, the server may answer `unauthorized_client` (RFC 6749 §5.2).
 */
export const UNSUPPORTED_GRANT: Question = {
  ...tokenRequest({ grant_type: 'postern-verify' }, 'with an unknown grant_type'),
  refused: true,
}

/** A GET to the token endpoint, which takes only POST. */
export const GET_TOKEN: Question = {
  ...unauthorized(TOKEN_PATH, [], ''),
  endpoint: 'oauth',
  what: `GET ${TOKEN_PATH}`,
}

export function apiRequest(path: string, accessToken: string, what = 'with a valid token'): Question {
  const fields = ['Authorization', `Bearer ${accessToken}`]
  return { endpoint: 'api', method: 'GET', path, fields, what: `GET ${path} ${what}` }
}

/** A request to the API without a valid token, which the server must refuse. */
export function unauthorized(
  path: string,
  fields: Fields,
  what: string,
  method: 'GET' | 'HEAD' | 'OPTIONS' = 'GET',
): Question {
  return { endpoint: 'api', method, path, fields, refused: true, what: `${method} ${path} ${what}` }
}

/** A path with one more parameter in its query. */
export function withParameter(path: string, parameter: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}${parameter}`
}

/** The response to one request. Without a response, the status is 0. */
export interface Received {
  readonly status: number
  /** Every value of every field, by lower-case name. */
  readonly fields: ReadonlyMap<string, readonly string[]>
  readonly body: string
  /** Time of arrival (Unix time in ms). */
  readonly at: number
  readonly sentAt: number
  /** The time from the request to the head of the response (ms). */
  readonly ms: number
  /** Why there was no response, such as `no response within 10 s`, or no whole one: `200, whose body broke off`. */
  readonly failure: string | undefined
  /** No connection could be opened, so nothing was sent. */
  readonly unreachable?: true
}

export type Observation = Pick<Received, 'status' | 'fields' | 'body' | 'at'>

/** Groups header fields by lower-case name, so two spellings of one name count as a repeated field. */
export function foldFields(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
): ReadonlyMap<string, readonly string[]> {
  const fields = new Map<string, readonly string[]>()
  for (const [name, value = []] of Object.entries(headers)) {
    const lower = name.toLowerCase()
    const values = [...(fields.get(lower) ?? []), ...(typeof value === 'string' ? [value] : value)]
    if (values.length > 0) fields.set(lower, values)
  }
  return fields
}

/** The value of a field that occurs exactly once; otherwise undefined. */
export function only({ fields }: Pick<Observation, 'fields'>, name: string): string | undefined {
  const values = fields.get(name)
  return values?.length === 1 ? values[0] : undefined
}

/** The number in a text of decimal digits only, without sign or whitespace; otherwise undefined. */
export function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

/** The `Date` of a response (Unix time in ms); undefined if the field is missing, repeated or not a date. */
export function dateOf(observation: Observation): number | undefined {
  const date = Date.parse(only(observation, 'date') ?? '')
  return Number.isNaN(date) ? undefined : date
}

/** A member of the JSON object in a body; undefined without such a member. */
export function member({ body }: Pick<Observation, 'body'>, name: string): unknown {
  try {
    return Object.getOwnPropertyDescriptor(JSON.parse(body) ?? {}, name)?.value
  } catch {
    return undefined
  }
}

/** A member that is a string and not empty; otherwise undefined. */
export function textMember(observation: Pick<Observation, 'body'>, name: string): string | undefined {
  const value = member(observation, name)
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** The errors of RFC 6749 §4.1.2.1 and §5.2, RFC 6750 §3.1 and RFC 7009 §2.2.1. */
const ERRORS =
  /^(?:invalid_(?:request|client|grant|scope|token)|unauthorized_client|unsupported_(?:grant|token)_type|insufficient_scope|access_denied|server_error|temporarily_unavailable)$/

/**
 * A response in words: its status with the OAuth error, or with type and length of its body. It quotes no text of the server, which may be
 * a secret in any encoding.
 */
export function described({ status, fields, body, failure }: Received): string {
  if (failure !== undefined) return failure
  if (body === '') return `${status} without a body`
  const error = member({ body }, 'error')
  if (typeof error === 'string' && ERRORS.test(error)) return `${status} ${error}`
  const type = mediaTypeOf({ fields })
  const errorless = status >= 400 && type.endsWith('json') ? ' without a known error' : ''
  return `${status} (${type}${errorless}, ${Buffer.byteLength(body)} bytes)`
}

/** Types that a server with this API, or a device behind it, may use. */
const TYPES =
  /^(?:text\/(?:html|plain|xml)|application\/(?:(?:problem\+)?json|xml|octet-stream|x-www-form-urlencoded))$/

/** The media type of a response if it is one of `TYPES`; `no type` or `another type` otherwise. */
export function mediaTypeOf({ fields }: Pick<Observation, 'fields'>): string {
  const value = fields.get('content-type')?.join() ?? ''
  const type = value.toLowerCase().replace(/;.*/s, '').trim()
  return value === '' ? 'no type' : TYPES.test(type) ? type : 'another type'
}

/** A JSON value in words. A string is not quoted, because it may be a secret. */
export function shown(value: unknown): string {
  if (value === undefined || value === '') return value === '' ? 'empty' : 'missing'
  return typeof value === 'number' ? String(value) : `a ${Array.isArray(value) ? 'list' : typeof value}`
}

/** The server has declared by REFUSED_STREAM or GOAWAY that it did not process an HTTP/2 request (RFC 9113 §8.7). */
export const UNPROCESSED = new Error('the server did not process each request')

const CLOSED = /^(?:ECONNRESET|EPIPE|ERR_HTTP2_(?:SESSION_ERROR|INVALID_SESSION|GOAWAY_SESSION))$/

/** A hint of Node that does not help here: the authorities of the system are trusted already. */
const NODES_HINT = /; if the root CA is installed locally, try running Node\.js with --use-system-ca$/

/**
 * An error in words.
 *
 * @param status of the response whose body broke off; undefined without a response
 */
export function clientFailure(error: unknown, status: number | undefined, timeout: number): string {
  if (error instanceof Error && /^(?:Timeout|Abort)Error$/.test(error.name)) {
    const within = `within ${timeout / 1000} s`
    return status === undefined ? `no response ${within}` : `${status}, whose body did not end ${within}`
  }
  if (error === UNPROCESSED) return UNPROCESSED.message
  const code = codeOf(error)
  if (status !== undefined) return `${status}, whose body broke off`
  if (code.startsWith('HPE_')) return `no valid HTTP response (${code})`
  if (code === 'ERR_HTTP2_STREAM_ERROR') return 'the HTTP/2 stream was reset without a response'
  if (CLOSED.test(code)) return 'the connection was closed without a response'
  // OpenSSL's errors have several parts, with the path of a source file: `...:SSL routines::wrong version number:../ssl/...`
  const [, ofTls] = /:SSL routines:[^:]*:([^:\n]+)/.exec(reasonOf(error)) ?? []
  return `no response: ${ofTls ?? reasonOf(error).replace(NODES_HINT, '')}`
}
