/**
 * Every way in which the sidecar itself says no. A closed union: `gate/refusal-reply.ts` is the one place that
 * turns a refusal into status, headers and body, and the compiler holds it to all of them.
 */
export type Refusal =
  | { readonly kind: 'malformed'; readonly description: string }
  | { readonly kind: 'invalid-request'; readonly description: string }
  | { readonly kind: 'invalid-grant'; readonly description: string }
  | { readonly kind: 'unsupported-grant-type'; readonly description: string }
  | { readonly kind: 'method-not-allowed'; readonly allow: string }
  | { readonly kind: 'unsupported-media-type' }
  | { readonly kind: 'content-too-large' }
  | { readonly kind: 'request-timeout' }
  | { readonly kind: 'expectation-failed' }
  | { readonly kind: 'header-too-large' }
  | { readonly kind: 'unauthorized'; readonly cause: AuthFailure }
  | { readonly kind: 'rate-limited'; readonly retryAfter: number }
  | { readonly kind: 'overloaded'; readonly retryAfter: number }
  | { readonly kind: 'upstream'; readonly failure: UpstreamFailure }
  | { readonly kind: 'server-error' }

/** Why a bearer token was not accepted: the `reason` label of `postern_auth_failures_total`. */
export type AuthFailure = 'missing' | 'malformed' | 'unknown' | 'expired' | 'revoked'

/**
 * Why the device gave no usable answer, in the words of RFC 9209 §2.3. The same word is the `error` of
 * `Proxy-Status` and the `reason` label of `postern_upstream_errors_total`.
 */
export type UpstreamFailure =
  | 'dns_error'
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

const UNREACHABLE: ReadonlySet<UpstreamFailure> = new Set([
  'dns_error',
  'destination_unavailable',
  'connection_refused',
  'connection_timeout',
  'tls_certificate_error',
  'tls_protocol_error',
])

/** Whether a failure means that the device cannot be reached, not that one response went wrong. */
export function isUnreachable(failure: UpstreamFailure): boolean {
  return UNREACHABLE.has(failure)
}
