import { expect, it } from 'vitest'
import { createBreaker } from '../../src/device/breaker.ts'
import { DeviceFault, failureOf } from '../../src/device/failure.ts'
import type { RoundTripRequest } from '../../src/forward/round-trip.ts'
import { createUpstream, type UpstreamDependencies } from '../../src/forward/upstream.ts'
import type { Exchange } from '../../src/http/exchange.ts'
import { createBoundedQueue } from '../../src/system/bounded-queue.ts'
import { isBug } from '../../src/system/setup-error.ts'
import { stillClock } from '../support/clock.ts'
import { admitted } from '../support/forward.ts'
import { requestHead } from '../support/request-head.ts'

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

it('C19 an error of the language is a bug of ours, an error with a code is not', () => {
  expect([new TypeError('x is not a function'), new RangeError('too deep')].map(isBug)).toEqual([true, true])
  const fromNode = Object.assign(new TypeError('a status'), { code: 'ERR_HTTP2_STATUS_INVALID' })
  const others = [fromNode, withCode('ECONNRESET'), new Error('?'), new DeviceFault('dns_error'), undefined]
  expect(others.map(isBug)).toEqual([false, false, false, false, false])
})

it('C18 a bug on the way to the device is not counted as the failure of the device', async () => {
  const bug = new TypeError('x is not a function')
  const failures: string[] = []
  const clock = stillClock()
  const upstream = createUpstream({
    roundTrip: ({ onEnd }: RoundTripRequest) => onEnd({ kind: 'failed', error: bug, silent: true }),
    guard: createBoundedQueue({ inside: 1, waiting: 0, patience: 1 }),
    breaker: createBreaker(clock),
    signIn: undefined,
    request: () => ({ host: undefined, added: [] }),
    clock,
    events: { failed: (failure: string) => failures.push(failure) },
  } as unknown as UpstreamDependencies) // all that a forwarded request without an answer asks for
  const head = requestHead()
  const exchange = { head, broken: false, contestedWhile() {} } as unknown as Exchange // likewise
  const ended = new Promise<unknown>((ended, failed) =>
    upstream.forward(admitted(head), exchange, { ended, failed }),
  )
  await expect(ended).rejects.toBe(bug)
  expect(failures).toEqual([])
})
