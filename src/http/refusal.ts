import type { Fields } from './fields.ts'

/**
 * Every refusal of the sidecar, as data. Only `gate/refusal-response.ts` turns a refusal into status, fields and body. The union is
 * closed, so the compiler checks that it handles all of them.
 */
export type Refusal =
  | { readonly kind: 'malformed'; readonly description: string }
  | { readonly kind: 'invalid-request'; readonly description: string }
  /** `cause`: the password belongs to another name than `username`. Only the log tells this. */
  | { readonly kind: 'invalid-grant'; readonly description: string; readonly cause?: 'other-name' }
  | { readonly kind: 'unsupported-grant-type'; readonly description: string }
  | { readonly kind: 'method-not-allowed'; readonly allow: string }
  | { readonly kind: 'unsupported-media-type' }
  | { readonly kind: 'content-too-large' }
  | { readonly kind: 'body-too-large' }
  | { readonly kind: 'length-required' }
  | { readonly kind: 'request-timeout' }
  | { readonly kind: 'expectation-failed' }
  | { readonly kind: 'header-too-large' }
  | {
      readonly kind: 'unauthorized'
      readonly cause: AuthFailure
      /** The request is a login at another spelling of the token endpoint's path (C1). */
      readonly misplaced?: true
    }
  | { readonly kind: 'cross-origin' }
  | {
      readonly kind: 'insufficient-scope'
      /** The request is in `allow`, but has a field that names another path, method or host. */
      readonly override?: true
    }
  | { readonly kind: 'rate-limited'; readonly retryAfter: number }
  | { readonly kind: 'wrong-passwords'; readonly retryAfter: number }
  | { readonly kind: 'address-denied' }
  | { readonly kind: 'overloaded'; readonly retryAfter: number }
  /** Too many passwords wait for verification. The device is not the cause. */
  | { readonly kind: 'logins-overloaded'; readonly retryAfter: number }
  | {
      readonly kind: 'upstream'
      readonly failure: UpstreamFailure
      /** When the client may retry (seconds). Only set for a request that has not reached the device. */
      readonly retryAfter?: number
    }
  /** The password hook gave no verdict. */
  | { readonly kind: 'password-unchecked' }
  | { readonly kind: 'store-unavailable' }
  | { readonly kind: 'server-error' }

/** The reason for the refusal of a bearer token: the `reason` label of `postern_auth_failures_total`. */
export type AuthFailure = 'missing' | 'malformed' | 'unknown' | 'expired' | 'revoked'

/**
 * The reason why the device sent no usable response, with the names of RFC 9209 §2.3. The name is also the `error` of `Proxy-Status` and
 * the `reason` label of `postern_upstream_errors_total`.
 */
export type UpstreamFailure =
  | 'dns_error'
  | 'dns_timeout'
  | 'destination_unavailable'
  | 'connection_refused'
  | 'connection_timeout'
  | 'connection_terminated'
  | 'tls_certificate_error'
  | 'tls_protocol_error'
  | 'http_response_timeout'
  | 'http_response_incomplete'
  | 'http_response_header_section_size'
  | 'http_protocol_error'
  | 'http_upgrade_failed'

const UNREACHABLE: ReadonlySet<string> = new Set([
  'dns_error',
  'dns_timeout',
  'destination_unavailable',
  'connection_refused',
  'connection_timeout',
  'tls_certificate_error',
  'tls_protocol_error',
] satisfies UpstreamFailure[])

/**
 * Whether a failure means that the device cannot be reached, not only that one response failed.
 *
 * @param failure an `UpstreamFailure`, or its name from a record
 */
export function isUnreachable(failure: string): boolean {
  return UNREACHABLE.has(failure)
}

/** The client paused too long within its request body. */
export class StalledBodyError extends Error {
  override readonly name = 'StalledBodyError'
  override readonly message = 'the request body stalled'
}

/** The client left within its request body, or broke the framing. */
export class BrokenBodyError extends Error {
  override readonly name = 'BrokenBodyError'
  override readonly message = 'the request body broke off'
}

/** The body exceeded `upstream.max_body` while it was read. */
export class OversizedBodyError extends Error {
  override readonly name = 'OversizedBodyError'
  override readonly message = 'the request body is too long for the device'
}

export const BROKEN_BODY: Refusal = { kind: 'malformed', description: 'The request body broke off.' }

/** The body is longer than `upstream.max_body`. */
export const OVERSIZED_BODY: Refusal = { kind: 'body-too-large' }

/** The refusal for an error of a request body that stalled, broke off or was too long; undefined for any other error. */
export function bodyFault(error: unknown): Refusal | undefined {
  if (error instanceof OversizedBodyError) return OVERSIZED_BODY
  if (error instanceof StalledBodyError) return { kind: 'request-timeout' }
  return error instanceof BrokenBodyError ? BROKEN_BODY : undefined
}

/** A complete own response of the sidecar. */
export interface LocalResponse {
  readonly status: number
  readonly fields: Fields
  readonly body: string
  /** The same object is sent again, so values derived from it can be cached. */
  readonly reusable?: boolean
}

export type JsonContent = Pick<LocalResponse, 'fields' | 'body'>

/** The media type, spelt as in the device's documentation. */
const JSON_TYPE = 'application/json;charset=UTF-8'

/** A response with a JSON body. No cache may store it, because the body may hold tokens (RFC 6749 §5.1). */
export function jsonResponse(status: number, value: object, more: Fields = []): LocalResponse {
  const { fields, body } = jsonContent(value)
  return { status, fields: [...fields, ...more], body }
}

/** The body of a `jsonResponse` and the fields that describe it, for a caller that sends it often. */
export function jsonContent(value: object): JsonContent {
  const body = JSON.stringify(value)
  return {
    fields: [
      'Content-Type',
      JSON_TYPE,
      'Content-Length',
      String(Buffer.byteLength(body)),
      'Cache-Control',
      'no-store',
      'Pragma',
      'no-cache',
      'X-Content-Type-Options',
      'nosniff',
    ],
    body,
  }
}
