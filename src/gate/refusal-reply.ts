import { PSEUDONYM } from '../http/fields.ts'
import {
  type JsonContent,
  jsonContent,
  type Refusal,
  type Reply,
  type UpstreamFailure,
} from '../http/refusal.ts'

/** `contract`: only the five statuses that the device's documentation lists. `http`: the precise status (C19). */
export type StatusCodes = 'contract' | 'http'

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

interface RefusalResponse {
  readonly contract: 200 | 400 | 401 | 429 | 500
  readonly http: number
  readonly content: JsonContent
  readonly fields?: readonly string[]
}

function errorContent(code: ErrorCode, description: string): JsonContent {
  return jsonContent({ error: code, error_description: description })
}

/** Built once, because a flood of requests gets these responses. */
const RATE_LIMITED = errorContent('rate_limited', 'The rate limit is exceeded.')
const TOO_MANY_GUESSES = errorContent('rate_limited', 'Too many wrong passwords: try again later.')
const TOKEN_MISSING = errorContent('invalid_token', 'A bearer token is required.')
const OUT_OF_SCOPE = errorContent('insufficient_scope', 'This login may not make the request.')
const SERVER_ERROR = errorContent('server_error', 'The server failed to process the request.')
const TOKEN_INVALID = errorContent('invalid_token', 'The access token is not valid.')

export interface RefusalSettings {
  readonly statusCodes: StatusCodes
  readonly realm: string
}

/** The replies with 401, without a token and with one. They depend on the settings only, and a flood of requests gets them. */
const unauthorizedReplies = new WeakMap<
  RefusalSettings,
  { readonly missing: Reply; readonly invalid: Reply }
>()

/**
 * The one place that turns a refusal into a response. The texts are fixed, so no detail of the request, the device or this
 * machine can leak through them.
 */
export function refusalReply(refusal: Refusal, settings: RefusalSettings): Reply {
  if (refusal.kind === 'insufficient-scope') return replyOf(outOfScope(settings), settings, false)
  if (refusal.kind !== 'unauthorized') return replyOf(responseFor(refusal), settings, false)
  let replies = unauthorizedReplies.get(settings)
  if (replies === undefined) {
    const missing = replyOf(unauthorized(TOKEN_MISSING, settings.realm, ''), settings, true)
    const invalid = replyOf(
      unauthorized(TOKEN_INVALID, settings.realm, ', error="invalid_token"'),
      settings,
      true,
    )
    replies = { missing, invalid }
    unauthorizedReplies.set(settings, replies)
  }
  return refusal.cause === 'missing' ? replies.missing : replies.invalid
}

function replyOf(
  { contract, http, content, fields = [] }: RefusalResponse,
  { statusCodes }: RefusalSettings,
  reusable: boolean,
): Reply {
  const status = statusCodes === 'contract' ? contract : http
  return { status, fields: [...content.fields, ...fields], body: content.body, reusable }
}

/** Refusals with the code `invalid_request` and a fixed text: their precise status, and the text. */
const INVALID = {
  'method-not-allowed': [405, 'The method is not allowed at this path.'],
  'unsupported-media-type': [415, 'The Content-Type must be application/x-www-form-urlencoded in UTF-8.'],
  'content-too-large': [413, 'The request body is too large.'],
  'length-required': [411, 'The device needs the length of the body: send Content-Length.'],
  'request-timeout': [408, 'The request did not arrive in time.'],
  'expectation-failed': [417, 'The only supported expectation is 100-continue.'],
  'header-too-large': [431, 'The header of the request is too large.'],
  'cross-origin': [403, 'The request does not come from a page of this address.'],
  'address-denied': [403, 'This address may not use this service.'],
} as const

function responseFor(
  refusal: Exclude<Refusal, { kind: 'unauthorized' | 'insufficient-scope' }>,
): RefusalResponse {
  switch (refusal.kind) {
    case 'malformed':
    case 'invalid-request':
      return badRequest(400, 'invalid_request', refusal.description)
    case 'invalid-grant':
      return badRequest(400, 'invalid_grant', refusal.description)
    case 'unsupported-grant-type':
      return badRequest(400, 'unsupported_grant_type', refusal.description)
    case 'rate-limited':
    case 'wrong-passwords': {
      const content = refusal.kind === 'rate-limited' ? RATE_LIMITED : TOO_MANY_GUESSES
      return { contract: 429, http: 429, content, fields: ['Retry-After', String(refusal.retryAfter)] }
    }
    case 'overloaded': {
      const content = errorContent('overloaded', 'The device is busy.')
      const fields = ['Retry-After', String(refusal.retryAfter)]
      return failed(503, content, 'connection_limit_reached', fields)
    }
    case 'upstream':
      return upstreamFailed(refusal.failure)
    case 'store-unavailable':
      // The error of RFC 9209 §2.3 for a failure that has nothing to do with the device.
      return failed(503, SERVER_ERROR, 'proxy_internal_error')
    case 'server-error':
      return { contract: 500, http: 500, content: SERVER_ERROR }
    default: {
      const [http, description] = INVALID[refusal.kind]
      const fields = refusal.kind === 'method-not-allowed' ? ['Allow', refusal.allow] : []
      return { ...badRequest(http, 'invalid_request', description), fields }
    }
  }
}

function badRequest(http: number, code: ErrorCode, description: string): RefusalResponse {
  return { contract: 400, http, content: errorContent(code, description) }
}

/** @param error the name of RFC 9209 §2.3 for `Proxy-Status` */
function failed(
  http: number,
  content: JsonContent,
  error: string,
  fields: readonly string[] = [],
): RefusalResponse {
  return { contract: 500, http, content, fields: [...fields, 'Proxy-Status', `${PSEUDONYM}; error=${error}`] }
}

/** @param error of the challenge, only if the request showed a token (RFC 6750 §3) */
function unauthorized(content: JsonContent, realm: string, error: string): RefusalResponse {
  return {
    contract: 401,
    http: 401,
    content,
    fields: ['WWW-Authenticate', `Bearer realm="${realm}"${error}`],
  }
}

/** RFC 6750 §3.1. A client that may only read must not take it for a reason to log in again, so it is never 401. */
function outOfScope({ statusCodes, realm }: RefusalSettings): RefusalResponse {
  const challenge = `Bearer realm="${realm}", error="insufficient_scope"`
  const fields = statusCodes === 'http' ? ['WWW-Authenticate', challenge] : []
  return { contract: 400, http: 403, content: OUT_OF_SCOPE, fields }
}

/** 504 for a timeout; 502 for a device that is unreachable or sends an invalid response (RFC 9110 §15.6, RFC 9209 §2.3). */
function upstreamFailed(failure: UpstreamFailure): RefusalResponse {
  const isLate = failure === 'connection_timeout' || failure === 'http_response_timeout'
  return isLate
    ? failed(504, errorContent('upstream_timeout', 'The device did not respond in time.'), failure)
    : failed(502, errorContent('upstream_unavailable', 'The device sent no usable response.'), failure)
}
