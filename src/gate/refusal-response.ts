import { OWN_PATHS } from '../http/admission.ts'
import { type Fields, PSEUDONYM } from '../http/fields.ts'
import {
  isUnreachable,
  type JsonContent,
  jsonContent,
  type LocalResponse,
  type Refusal,
} from '../http/refusal.ts'

/** The error codes that clients receive (C18). */
type ErrorCode =
  | 'invalid_request'
  | 'invalid_grant'
  | 'unsupported_grant_type'
  | 'invalid_token'
  | 'insufficient_scope'
  | 'rate_limited'
  | 'server_error'
  | 'upstream_unavailable'
  | 'upstream_timeout'
  | 'overloaded'

/** The part of a response that all refusals of a kind share. */
interface RefusalResponse {
  /** The precise status. */
  readonly http: number
  readonly code: ErrorCode
  /** Built once, because a flood of requests gets it. Undefined: each refusal of this kind has a description of its own. */
  readonly content: JsonContent | undefined
}

function response(http: number, code: ErrorCode, description?: string): RefusalResponse {
  return { http, code, content: description === undefined ? undefined : errorContent(code, description) }
}

function errorContent(code: ErrorCode, description: string): JsonContent {
  return jsonContent({ error: code, error_description: description })
}

const invalid = (http: number, description?: string): RefusalResponse =>
  response(http, 'invalid_request', description)

const SERVER_ERROR = 'The server failed to process the request.'

/** The descriptions of a 401, exported for the tests that compare them. */
export const WORDS_OF_401 = {
  missing: 'A bearer token is required.',
  invalid: 'The access token is not valid.',
  misplaced: `Tokens are issued at ${OWN_PATHS.token}.`,
} as const

const RESPONSES: Readonly<Record<Refusal['kind'], RefusalResponse>> = {
  malformed: invalid(400),
  'invalid-request': invalid(400),
  'method-not-allowed': invalid(405, 'The method is not allowed at this path.'),
  'unsupported-media-type': invalid(
    415,
    'The Content-Type must be application/x-www-form-urlencoded in UTF-8.',
  ),
  'content-too-large': invalid(413, 'The request body is too large.'),
  'body-too-large': invalid(413, 'The request body is longer than the device may get.'),
  'length-required': invalid(411, 'The device needs the length of the body: send Content-Length.'),
  'request-timeout': invalid(408, 'The request did not arrive in time.'),
  'expectation-failed': invalid(417, 'The only supported expectation is 100-continue.'),
  'header-too-large': invalid(431, 'The header of the request is too large.'),
  'cross-origin': invalid(403, 'The request does not come from a page of this address.'),
  'address-denied': invalid(403, 'This address may not use this service.'),
  'invalid-grant': response(400, 'invalid_grant'),
  'unsupported-grant-type': response(400, 'unsupported_grant_type'),
  unauthorized: response(401, 'invalid_token', WORDS_OF_401.invalid),
  'insufficient-scope': response(403, 'insufficient_scope', 'This login may not make the request.'),
  'rate-limited': response(429, 'rate_limited', 'The rate limit is exceeded.'),
  'wrong-passwords': response(429, 'rate_limited', 'Too many wrong passwords: try again later.'),
  overloaded: response(503, 'overloaded', 'The device is busy.'),
  'logins-overloaded': response(503, 'overloaded', 'Too many logins wait: try again later.'),
  // 502 for a device that is unreachable or sends an invalid response, 504 for a timeout (RFC 9110 §15.6, RFC 9209 §2.3). This one is for a
  // device that was reached: see `responseFor`.
  upstream: response(502, 'upstream_unavailable', 'The device sent no usable response.'),
  'password-unchecked': response(503, 'server_error', 'The password could not be checked.'),
  'store-unavailable': response(503, 'server_error', SERVER_ERROR),
  'server-error': response(500, 'server_error', SERVER_ERROR),
}
const TOKEN_MISSING = response(401, 'invalid_token', WORDS_OF_401.missing)
const MISPLACED = response(401, 'invalid_token', WORDS_OF_401.misplaced)
const UPSTREAM_LATE = response(504, 'upstream_timeout', 'The device did not respond in time.')
const UPSTREAM_UNREACHABLE = response(502, 'upstream_unavailable', 'The device cannot be reached.')

export interface RefusalSettings {
  /** `contract`: only the five statuses that the device's documentation lists. `http`: the precise status (C19). */
  readonly statusCodes: 'contract' | 'http'
  readonly realm: string
}

/**
 * The responses with 401: to requests without a token, and to those with one. They are built once per settings, because a flood of requests
 * gets them.
 */
const unauthorizedResponses = new WeakMap<
  RefusalSettings,
  { readonly missing: LocalResponse; readonly invalid: LocalResponse }
>()

/**
 * The one place that turns a refusal into a response. The texts are fixed, so they leak no detail of the request, the device or this
 * machine.
 */
export function refusalResponse(refusal: Refusal, settings: RefusalSettings): LocalResponse {
  if (refusal.kind !== 'unauthorized' || refusal.misplaced) return responseTo(refusal, settings, false)
  let responses = unauthorizedResponses.get(settings)
  if (responses === undefined) {
    const missing = responseTo({ kind: 'unauthorized', cause: 'missing' }, settings, true)
    responses = { missing, invalid: responseTo({ kind: 'unauthorized', cause: 'unknown' }, settings, true) }
    unauthorizedResponses.set(settings, responses)
  }
  return refusal.cause === 'missing' ? responses.missing : responses.invalid
}

function responseTo(refusal: Refusal, settings: RefusalSettings, reusable: boolean): LocalResponse {
  const { http, code, content } = responseFor(refusal)
  const { fields, body } = content ?? errorContent(code, 'description' in refusal ? refusal.description : '')
  const status = settings.statusCodes === 'http' ? http : documentedStatus(http)
  return { status, fields: [...fields, ...fieldsFor(refusal, settings)], body, reusable }
}

/** The status with the same meaning among the five of the device's documentation. */
function documentedStatus(http: number): 400 | 401 | 429 | 500 {
  if (http === 401 || http === 429) return http
  return http < 500 ? 400 : 500
}

function responseFor(refusal: Refusal): RefusalResponse {
  if (refusal.kind === 'unauthorized') {
    if (refusal.misplaced) return MISPLACED
    return refusal.cause === 'missing' ? TOKEN_MISSING : RESPONSES.unauthorized
  }
  if (refusal.kind !== 'upstream') return RESPONSES[refusal.kind]
  if (/^(?:connection|http_response)_timeout$/.test(refusal.failure)) return UPSTREAM_LATE
  return isUnreachable(refusal.failure) ? UPSTREAM_UNREACHABLE : RESPONSES.upstream
}

function fieldsFor(refusal: Refusal, { realm, statusCodes }: RefusalSettings): Fields {
  switch (refusal.kind) {
    case 'method-not-allowed':
      return ['Allow', refusal.allow]
    case 'rate-limited':
    case 'wrong-passwords':
    case 'logins-overloaded':
      return ['Retry-After', String(refusal.retryAfter)]
    case 'overloaded':
      return ['Retry-After', String(refusal.retryAfter), ...proxyStatus('connection_limit_reached')]
    case 'upstream':
      return refusal.retryAfter === undefined
        ? proxyStatus(refusal.failure)
        : ['Retry-After', String(refusal.retryAfter), ...proxyStatus(refusal.failure)]
    case 'password-unchecked':
    case 'store-unavailable':
      return proxyStatus('proxy_internal_error')
    case 'unauthorized':
      // With an error only if the request showed a token (RFC 6750 §3).
      return challenge(realm, refusal.cause === 'missing' ? '' : ', error="invalid_token"')
    case 'insufficient-scope':
      // RFC 6750 §3.1. Never 401: a client that may only read must not take it for a reason to log in again.
      return statusCodes === 'http' ? challenge(realm, ', error="insufficient_scope"') : []
    default:
      return []
  }
}

/**
 * The challenge, with the realm as a quoted string (RFC 9110 §5.6.4). Quotation marks and backslashes are escaped. Other characters than
 * ASCII are sent in UTF-8, which that grammar allows (`obs-text`). RFC 7617 has `charset` for Basic only, and RFC 6750 has none for Bearer.
 */
function challenge(realm: string, error: string): Fields {
  const quoted = Buffer.from(realm.replace(/["\\]/g, '\\$&')).toString('latin1')
  return ['WWW-Authenticate', `Bearer realm="${quoted}"${error}`]
}

/** @param error a name of RFC 9209 §2.3; `proxy_internal_error` is not about the device */
function proxyStatus(error: string): Fields {
  return ['Proxy-Status', `${PSEUDONYM}; error=${error}`]
}
