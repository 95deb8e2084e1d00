import type { Reply } from '../http/exchange.ts'
import { jsonReply } from '../http/json-reply.ts'
import { PSEUDONYM } from '../http/pseudonym.ts'
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
  readonly code: ErrorCode
  readonly description: string
  readonly fields?: readonly string[]
}

/**
 * The one place where a refusal becomes bytes. What it says is fixed text: nothing of the request, the device or
 * this machine can leak through it.
 */
export function refusalReply(
  refusal: Refusal,
  { statusCodes, realm }: { readonly statusCodes: StatusCodes; readonly realm: string },
): Reply {
  const answer = answerOf(refusal, realm)
  const status = statusCodes === 'contract' ? answer.contract : answer.http
  return jsonReply(status, { error: answer.code, error_description: answer.description }, answer.fields)
}

function answerOf(refusal: Refusal, realm: string): Answer {
  switch (refusal.kind) {
    case 'malformed':
    case 'invalid-request':
      return invalidRequest(400, refusal.description)
    case 'invalid-grant':
      return { contract: 400, http: 400, code: 'invalid_grant', description: refusal.description }
    case 'unsupported-grant-type':
      return {
        contract: 400,
        http: 400,
        code: 'unsupported_grant_type',
        description: 'The grant_type must be "password" or "refresh_token".',
      }
    case 'method-not-allowed':
      return {
        ...invalidRequest(405, 'The method is not served at this path.'),
        fields: ['Allow', refusal.allow],
      }
    case 'unsupported-media-type':
      return invalidRequest(415, 'The Content-Type must be application/x-www-form-urlencoded in UTF-8.')
    case 'content-too-large':
      return invalidRequest(413, 'The request body is larger than 8 KiB.')
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
        code: 'rate_limited',
        description: 'The rate limit is exceeded.',
        fields: ['Retry-After', String(refusal.retryAfter)],
      }
    case 'overloaded':
      return {
        contract: 500,
        http: 503,
        code: 'overloaded',
        description: 'Too many requests are waiting already.',
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
        code: 'server_error',
        description: 'The request failed on this side.',
      }
  }
}

function invalidRequest(http: number, description: string): Answer {
  return { contract: 400, http, code: 'invalid_request', description }
}

/** RFC 6750 §3: the error code only where a token was shown. */
function unauthorized(nothingShown: boolean, realm: string): Answer {
  const challenge = `Bearer realm="${realm}"`
  return {
    contract: 401,
    http: 401,
    code: 'invalid_token',
    description: nothingShown ? 'A bearer token is required.' : 'The access token is not valid.',
    fields: ['WWW-Authenticate', nothingShown ? challenge : `${challenge}, error="invalid_token"`],
  }
}

/** Timeouts are 504, a device that cannot be reached 503, everything else that it got wrong 502 (RFC 9209 §2.3). */
function upstreamFailed(failure: UpstreamFailure): Answer {
  const fields = ['Proxy-Status', `${PSEUDONYM}; error=${failure}`]
  switch (failure) {
    case 'connection_timeout':
    case 'http_response_timeout':
      return {
        contract: 500,
        http: 504,
        code: 'upstream_timeout',
        description: 'The device did not answer in time.',
        fields,
      }
    default:
      return {
        contract: 500,
        http: 502,
        code: 'upstream_unavailable',
        description: 'The device gave no usable answer.',
        fields,
      }
  }
}
