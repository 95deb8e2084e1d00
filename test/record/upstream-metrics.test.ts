import { expect, it } from 'vitest'
import { createMetrics } from '../../src/record/metrics.ts'

function start() {
  const metrics = createMetrics({ version: '0', node: '0' })
  return {
    service: metrics.upstream(undefined),
    other: metrics.upstream(undefined),
    up: async () => /^postern_upstream_up (\d)$/m.exec(await metrics.text())?.[1],
  }
}

it('postern_upstream_up shows the latest report about a service, whichever part reports it', async () => {
  const { service, other, up } = start()
  service.up(true)
  expect(await up()).toBe('1')
  other.failed('connection_refused')
  expect(await up()).toBe('0')
  service.up(true)
  expect(await up()).toBe('1')
})

it('H150 postern_upstream_up is 0 after five failed answers in a row; one whole answer between them counts', async () => {
  const { service, up } = start()
  const fail = (times: number) => {
    for (let i = 0; i < times; i += 1) service.failed('http_protocol_error')
  }
  service.responded(1)
  fail(4)
  service.relayed()
  fail(4)
  expect(await up()).toBe('1')
  fail(1)
  expect(await up()).toBe('0')
  service.responded(1) // a head, but no whole answer yet
  expect(await up()).toBe('0')
  service.relayed()
  expect(await up()).toBe('1')
})

it('H150 a health check that passes does not hide requests that fail, and ends the alarm when none failed since', async () => {
  const { service, up } = start()
  for (let i = 0; i < 5; i += 1) service.failed('http_response_timeout')
  service.up(true)
  expect(await up()).toBe('0')
  service.up(true)
  expect(await up()).toBe('1')
})

it('H150 postern_upstream_up is 1 when a WebSocket opens, and the failures before it are over', async () => {
  const { service, up } = start()
  for (let i = 0; i < 5; i += 1) service.failed('http_protocol_error')
  service.tunnel(1)
  expect(await up()).toBe('1')
  service.failed('http_protocol_error')
  expect(await up()).toBe('1')
})
