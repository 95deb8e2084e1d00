import type { Reply } from '../http/exchange.ts'
import { PSEUDONYM } from '../http/fields.ts'
import { type JsonContent, jsonContent } from '../http/json-reply.ts'
import type { Refusal, UpstreamFailure } from '../http/refusal.ts'

/** `contract`: only the five statuses that the device's document lists; `http`: the precise ones (C19). */
export type StatusCodes = 'contract' | 'http'

/** The error codes that a client may meet (C18). */
type ErrorCode =
  | 'invalid_request'
  | 'invalid_grant'
  | 'unsupported_grant_type'
  | 'invalid_token'
  | 'rate_limited'
  | 'server_error'
  | 'upstream_unavailable'
  | 'upstream_timeout'
  | 'overloaded'

interface Answer {
  readonly contract: 200 | 400 | 401 | 429 | 500
  readonly http: number
  readonly content: JsonContent
  readonly fields?: readonly string[]
}

function said(code: ErrorCode, description: string): JsonContent {
  return jsonContent({ error: code, error_description: description })
}

/** What a flood is told, put together once. */
const RATE_LIMITED = said('rate_limited', 'The rate limit is exceeded.')
const TOKEN_MISSING = said('invalid_token', 'A bearer token is required.')
const TOKEN_INVALID = said('invalid_token', 'The access token is not valid.')

/**
 * The one place where a refusal becomes bytes. What it says is fixed text: nothing of the request, the device or
 * this machine can leak through it.
 */
export function refusalReply(
  refusal: Refusal,
  { statusCodes, realm }: { readonly statusCodes: StatusCodes; readonly realm: string },
): Reply {
  const { contract, http, content, fields = [] } = answerOf(refusal, realm)
  const status = statusCodes === 'contract' ? contract : http
  return { status, fields: [...content.fields, ...fields], body: content.body }
}

function answerOf(refusal: Refusal, realm: string): Answer {
  switch (refusal.kind) {
    case 'malformed':
    case 'invalid-request':
      return invalidRequest(400, refusal.description)
    case 'invalid-grant':
      return { contract: 400, http: 400, content: said('invalid_grant', refusal.description) }
    case 'unsupported-grant-type':
      return { contract: 400, http: 400, content: said('unsupported_grant_type', refusal.description) }
    case 'method-not-allowed':
      return {
        ...invalidRequest(405, 'The method is not served at this path.'),
        fields: ['Allow', refusal.allow],
      }
    case 'unsupported-media-type':
      return invalidRequest(415, 'The Content-Type must be application/x-www-form-urlencoded in UTF-8.')
    case 'content-too-large':
      return invalidRequest(413, 'The request body is too large.')
    case 'request-timeout':
      return invalidRequest(408, 'The request did not arrive in time.')
    case 'expectation-failed':
      return invalidRequest(417, 'The only expectation that is met is 100-continue.')
    case 'header-too-large':
      return invalidRequest(431, 'The header of the request is too large.')
    case 'unauthorized':
      return unauthorized(refusal.cause === 'missing', realm)
    case 'rate-limited':
      return {
        contract: 429,
        http: 429,
        content: RATE_LIMITED,
        fields: ['Retry-After', String(refusal.retryAfter)],
      }
    case 'overloaded':
      return {
        contract: 500,
        http: 503,
        content: said('overloaded', 'Too many requests are waiting already.'),
        fields: [
          'Retry-After',
          String(refusal.retryAfter),
          'Proxy-Status',
          `${PSEUDONYM}; error=connection_limit_reached`,
        ],
      }
    case 'upstream':
      return upstreamFailed(refusal.failure)
    case 'server-error':
      return {
        contract: 500,
        http: 500,
        content: said('server_error', 'The request failed on this side.'),
      }
  }
}

function invalidRequest(http: number, description: string): Answer {
  return { contract: 400, http, content: said('invalid_request', description) }
}

/** RFC 6750 §3: the error code only where a token was shown. */
function unauthorized(nothingShown: boolean, realm: string): Answer {
  const challenge = `Bearer realm="${realm}"`
  return {
    contract: 401,
    http: 401,
    content: nothingShown ? TOKEN_MISSING : TOKEN_INVALID,
    fields: ['WWW-Authenticate', nothingShown ? challenge : `${challenge}, error="invalid_token"`],
  }
}

/** A timeout is 504; a device that cannot be reached, or answers wrongly, is 502 (RFC 9110 §15.6, RFC 9209 §2.3). */
function upstreamFailed(failure: UpstreamFailure): Answer {
  const fields = ['Proxy-Status', `${PSEUDONYM}; error=${failure}`]
  switch (failure) {
    case 'connection_timeout':
    case 'http_response_timeout':
      return {
        contract: 500,
        http: 504,
        content: said('upstream_timeout', 'The device did not answer in time.'),
        fields,
      }
    default:
      return {
        contract: 500,
        http: 502,
        content: said('upstream_unavailable', 'The device gave no usable answer.'),
        fields,
      }
  }
}
