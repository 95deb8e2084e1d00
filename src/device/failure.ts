import type { UpstreamFailure } from '../http/refusal.ts'
import type { ResponseFault } from '../http1/response-reader.ts'
import { codeOf } from '../system/setup-error.ts'

/** A fault of the device that the sidecar detected itself, with its name. */
export class DeviceFault extends Error {
  override readonly name = 'DeviceFault'
  readonly failure: UpstreamFailure
  constructor(failure: UpstreamFailure) {
    super(failure)
    this.failure = failure
  }
}

/** The failure that each fault of a response counts as. */
export const BY_RESPONSE_FAULT: Readonly<Record<ResponseFault, UpstreamFailure>> = {
  malformed: 'http_protocol_error',
  'too-large': 'http_response_header_section_size',
  incomplete: 'http_response_incomplete',
}

const BY_CODE: Readonly<Record<string, UpstreamFailure>> = {
  ENOTFOUND: 'dns_error',
  EAI_AGAIN: 'dns_error',
  EAI_NODATA: 'dns_error',
  ECONNREFUSED: 'connection_refused',
  ENOENT: 'destination_unavailable',
  EACCES: 'destination_unavailable',
  EHOSTUNREACH: 'destination_unavailable',
  ENETUNREACH: 'destination_unavailable',
  EADDRNOTAVAIL: 'destination_unavailable',
  EMFILE: 'destination_unavailable',
  ETIMEDOUT: 'connection_timeout',
  ECONNECT_TIMEOUT: 'connection_timeout',
  ECONNRESET: 'connection_terminated',
  EPIPE: 'connection_terminated',
  EPROTO: 'tls_protocol_error',
}

/** Node's codes for a certificate that OpenSSL or Node refuses. `UNSPECIFIED`: among others a key that is too short. */
const CERTIFICATE_CODE =
  /^(?:CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|ERR_TLS_CERT_|HOSTNAME_MISMATCH|INVALID_|UNSPECIFIED)/

/** The name of a failure (RFC 9209 §2.3). No other function derives one from an error. */
export function failureOf(error: unknown): UpstreamFailure {
  if (error instanceof DeviceFault) return error.failure
  if (error instanceof AggregateError && error.errors.length > 0) return failureOf(error.errors[0])
  const code = codeOf(error)
  const known = BY_CODE[code]
  if (known !== undefined) return known
  if (CERTIFICATE_CODE.test(code)) return 'tls_certificate_error'
  if (code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_')) return 'tls_protocol_error'
  return 'http_protocol_error'
}
