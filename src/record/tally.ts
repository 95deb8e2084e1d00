import { STATUS_CODES } from 'node:http'
import type { Exchange } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import type { MetricRegistry, Series } from './metric-registry.ts'

/** The values of the `reason` label of `postern_refusals_total`. It compiles only with every kind of refusal. */
export const REASONS = {
  malformed: 'malformed',
  'invalid-request': 'invalid_request',
  'invalid-grant': 'invalid_grant',
  'unsupported-grant-type': 'unsupported_grant_type',
  'method-not-allowed': 'method_not_allowed',
  'unsupported-media-type': 'unsupported_media_type',
  'content-too-large': 'content_too_large',
  'body-too-large': 'body_too_large',
  'length-required': 'length_required',
  'request-timeout': 'request_timeout',
  'expectation-failed': 'expectation_failed',
  'header-too-large': 'header_too_large',
  unauthorized: 'unauthorized',
  'cross-origin': 'cross_origin',
  'insufficient-scope': 'insufficient_scope',
  'rate-limited': 'rate_limited',
  'wrong-passwords': 'wrong_passwords',
  'address-denied': 'address_denied',
  overloaded: 'overloaded',
  'logins-overloaded': 'logins_overloaded',
  upstream: 'upstream',
  'password-unchecked': 'password_unchecked',
  'store-unavailable': 'store_unavailable',
  'server-error': 'server_error',
} as const satisfies Record<Refusal['kind'], string>

/** The `reason` label of `postern_requests_ended_total`. Call it only for an admitted exchange that Postern has ended. */
export function endReasonOf({ endedFor }: Pick<Exchange, 'endedFor'>): string {
  if (endedFor === undefined) return 'idle'
  return endedFor.kind === 'unauthorized' ? endedFor.cause : REASONS[endedFor.kind]
}

export const REFUSAL_REASONS = Object.values(REASONS)

/** The methods that are counted by name. All others count as `other`, so clients cannot create series without end. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Counts the requests of an endpoint type by method and status, without building a text key for each request. */
export function createTally(counter: ReturnType<MetricRegistry['counter']>, endpoint: string) {
  const series = new Map<number, Series>()
  return (method: string, status: number): void => {
    const known = METHODS.indexOf(method)
    const key = 1000 * known + status
    let counted = series.get(key)
    if (counted === undefined) {
      counted = counter(endpoint, METHODS[known] ?? 'other', codeLabel(status))
      series.set(key, counted)
    }
    counted.value += 1
  }
}

/** A registered status by number, `other` for an unregistered one, `none` for no response (the client left). */
function codeLabel(status: number): string {
  if (status === 0) return 'none'
  return STATUS_CODES[status] === undefined ? 'other' : String(status)
}
