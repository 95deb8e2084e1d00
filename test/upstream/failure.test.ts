import { expect, it } from 'vitest'
import { DeviceFault, failureOf } from '../../src/upstream/failure.ts'

const withCode = (code: string): Error => Object.assign(new Error('said by Node'), { code })

it.each([
  ['ENOTFOUND', 'dns_error'],
  ['EAI_AGAIN', 'dns_error'],
  ['ECONNREFUSED', 'connection_refused'],
  ['EHOSTUNREACH', 'destination_unavailable'],
  ['ENETUNREACH', 'destination_unavailable'],
  ['ENOENT', 'destination_unavailable'],
  ['ETIMEDOUT', 'connection_timeout'],
  ['ECONNRESET', 'connection_terminated'],
  ['EPIPE', 'connection_terminated'],
  ['HPE_INVALID_CONSTANT', 'http_protocol_error'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls_certificate_error'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'tls_certificate_error'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls_certificate_error'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'tls_certificate_error'],
  ['CERT_HAS_EXPIRED', 'tls_certificate_error'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls_certificate_error'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls_protocol_error'],
  ['EPROTO', 'tls_protocol_error'],
])('C19 %s is told as %s', (code, failure) => {
  expect(failureOf(withCode(code))).toBe(failure)
})

it('C19 what nobody has a name for is the fault of the protocol, not a crash', () => {
  for (const error of [new Error('?'), 'text', undefined, null, { code: 'ECONNREFUSED' }, withCode('')]) {
    expect(failureOf(error)).toBe('http_protocol_error')
  }
})

it('C19 of several addresses that failed the first one speaks', () => {
  expect(failureOf(new AggregateError([withCode('ECONNREFUSED'), withCode('ETIMEDOUT')]))).toBe(
    'connection_refused',
  )
})

it('C19 a fault that was named on the way keeps its name', () => {
  expect(failureOf(new DeviceFault('http_upgrade_failed'))).toBe('http_upgrade_failed')
})
