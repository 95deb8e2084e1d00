import { expect, it } from 'vitest'
import { createBreaker } from '../../src/device/breaker.ts'
import { stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { startSidecar } from '../support/sidecar.ts'

it('after three failures in a row to reach the device the breaker refuses requests, except one probe per second', async () => {
  const clock = stillClock()
  const breaker = createBreaker(clock)
  for (let i = 0; i < 3; i += 1) {
    expect(breaker.refuse()).toBeUndefined()
    breaker.failed('connection_refused')
  }
  expect(breaker.refuse()).toBe('connection_refused')
  await clock.advance(999)
  expect(breaker.refuse()).toBe('connection_refused')
  await clock.advance(1)
  expect(breaker.refuse()).toBeUndefined()
  expect(breaker.refuse()).toBe('connection_refused')
})

it('a failed probe keeps the breaker open, and a successful one closes it for all requests', async () => {
  const clock = stillClock()
  const breaker = createBreaker(clock)
  for (let i = 0; i < 3; i += 1) breaker.failed('connection_timeout')
  await clock.advance(1000)
  expect(breaker.refuse()).toBeUndefined()
  breaker.failed('dns_error')
  expect(breaker.refuse()).toBe('dns_error')
  await clock.advance(1000)
  expect(breaker.refuse()).toBeUndefined()
  breaker.succeeded()
  expect(breaker.refuse()).toBeUndefined()
  expect(breaker.refuse()).toBeUndefined()
})

it('a device that responds slowly or with protocol errors does not open the breaker', () => {
  const breaker = createBreaker(stillClock())
  for (let i = 0; i < 10; i += 1) breaker.failed('http_response_timeout')
  for (let i = 0; i < 2; i += 1) breaker.failed('connection_refused')
  breaker.failed('http_protocol_error')
  breaker.failed('connection_refused')
  expect(breaker.refuse()).toBeUndefined()
})

it('C19 a device that is down gets no requests while the sidecar refuses them, and serves again after it is back', async () => {
  const device = await startDevice()
  const port = Number(new URL(device.url).port)
  const sidecar = await startSidecar({ device })
  const token = await sidecar.token()
  await device.stop()
  for (let i = 0; i < 3; i += 1) expect((await sidecar.request({ token })).status).toBe(500)
  const refused = await sidecar.request({ token })
  expect(refused.header('Proxy-Status')).toBe('postern; error=connection_refused')
  expect(await sidecar.metric('postern_upstream_up')).toBe(0)
  const back = await startDevice(undefined, { port })
  await sidecar.clock.advance(1001)
  expect((await sidecar.request({ token })).status).toBe(200)
  expect((await sidecar.request({ token })).status).toBe(200)
  expect(back.requests.length).toBe(2)
})
