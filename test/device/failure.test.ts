import { expect, it } from 'vitest'
import { createBreaker } from '../../src/device/breaker.ts'
import type { Connection } from '../../src/device/connections.ts'
import { DeviceFault, failureOf } from '../../src/device/failure.ts'
import { createUpstream, type UpstreamDependencies } from '../../src/forward/upstream.ts'
import { createBoundedQueue } from '../../src/system/bounded-queue.ts'
import { isBug } from '../../src/system/setup-error.ts'
import { admitted } from '../support/admitted.ts'
import { stillClock } from '../support/clock.ts'
import { requestHead } from '../support/exchange.ts'

const withCode = (code: string): Error => Object.assign(new Error('from Node'), { code })

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
])('C19 %s is reported as %s', (code, failure) => {
  expect(failureOf(withCode(code))).toBe(failure)
})

it('C19 an unknown error is reported as http_protocol_error and does not throw', () => {
  for (const error of [new Error('?'), 'text', undefined, null, { code: 'ECONNREFUSED' }, withCode('')]) {
    expect(failureOf(error)).toBe('http_protocol_error')
  }
})

it('C19 a failure of several addresses is reported as that of the first', () => {
  expect(failureOf(new AggregateError([withCode('ECONNREFUSED'), withCode('ETIMEDOUT')]))).toBe(
    'connection_refused',
  )
})

it('C19 a DeviceFault keeps its failure', () => {
  expect(failureOf(new DeviceFault('http_upgrade_failed'))).toBe('http_upgrade_failed')
})

it('C19 a TypeError without a code is a bug of the sidecar, an error with a code is not', () => {
  expect([new TypeError('x is not a function'), new RangeError('too deep')].map(isBug)).toEqual([true, true])
  const fromNode = Object.assign(new TypeError('a status'), { code: 'ERR_HTTP2_STATUS_INVALID' })
  const others = [fromNode, withCode('ECONNRESET'), new Error('?'), new DeviceFault('dns_error'), undefined]
  expect(others.map(isBug)).toEqual([false, false, false, false, false])
})

it('C18 a bug of the sidecar does not count as a failure of the device', async () => {
  const bug = new TypeError('x is not a function')
  const failures: string[] = []
  const clock = stillClock()
  const connection: Partial<Connection> = {
    send: (_request, handler) => handler.failed(bug, 'silent'),
  }
  const upstream = createUpstream({
    connections: { borrow: () => ({ connection, release() {} }) },
    fields: { request: { host: undefined, added: [], named: [], set: new Set() } },
    queue: createBoundedQueue(clock, { inside: 1, waiting: 0, maxWait: 1 }),
    breaker: createBreaker(clock),
    signIn: undefined,
    clock,
    events: { failed: (failure: string) => failures.push(failure) },
  } as unknown as UpstreamDependencies) // `forward` uses no others for a request without a response
  const ended = new Promise<unknown>((ended, failed) =>
    upstream(admitted(requestHead()), {
      ended: (_request, refusal) => ended(refusal),
      onBug: (_request, bug) => failed(bug),
      refuses: () => true,
    }),
  )
  await expect(ended).rejects.toBe(bug)
  expect(failures).toEqual([])
})
