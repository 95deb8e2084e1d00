import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createBreaker, createHealthCheck } from '../../src/device/breaker.ts'
import type { Connections } from '../../src/device/connections.ts'
import { closeLater } from '../support/cleanup.ts'
import { send } from '../support/client.ts'
import { passUntil, stillClock } from '../support/clock.ts'
import { startDevice, startHoldingDevice } from '../support/device.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'

async function ready(sidecar: TestSidecar): Promise<unknown> {
  const { status, text } = await send({ transport: 'http1', url: sidecar.adminUrl, path: '/readyz' })
  return [status, JSON.parse(text)]
}

/** The default of `health.interval` (ms). */
const INTERVAL = 10_000

const READY = [200, { ready: true }]
const NOT_READY = [503, { ready: false, reasons: ['the device does not respond'] }]

describe('upstream.health', () => {
  it('updates readiness and postern_upstream_up without any client request', async () => {
    const device = await startDevice()
    const sidecar = await startSidecar({ device, config: { upstream: { health: { path: '/alive?' } } } })
    expect((await device.waitForRequests(1)).target).toBe('/alive?')
    await expect.poll(() => ready(sidecar)).toEqual(READY)
    await sidecar.clock.advance(INTERVAL - 1)
    expect(device.requests).toHaveLength(1)
    await sidecar.clock.advance(1)
    await device.waitForRequests(2)
    expect(await ready(sidecar)).toEqual(READY)
    expect(await sidecar.metric('postern_upstream_up')).toBe(1)
    await device.stop()
    await sidecar.clock.advance(INTERVAL)
    await expect.poll(() => ready(sidecar)).toEqual(NOT_READY)
    expect(await sidecar.metric('postern_upstream_up')).toBe(0)
  })

  it('takes a status of 500 and above for a device that is down, and any other for one that is up', async () => {
    const device = await startDevice()
    let status = 503
    device.handle((_, response) => response.writeHead(status).end())
    const sidecar = await startSidecar({ device, config: { upstream: { health: { path: '/' } } } })
    await expect.poll(() => ready(sidecar)).toEqual(NOT_READY)
    status = 401
    await sidecar.clock.advance(INTERVAL)
    await expect.poll(() => ready(sidecar)).toEqual(READY)
  })

  it('ends although the body of a response does not', async () => {
    const { device, held } = await startHoldingDevice()
    const sidecar = await startSidecar({ device, config: { upstream: { health: { path: '/' } } } })
    await device.waitForRequests(1)
    const [response] = held
    const closed = once(response as ServerResponse, 'close') // it has come
    for (let dripped = 0; dripped < 4; dripped += 1) {
      response?.write(' ')
      await sidecar.clock.advance(1_000)
    }
    await passUntil(sidecar.clock, closed)
    await expect.poll(() => ready(sidecar)).toEqual(READY)
    await passUntil(sidecar.clock, device.waitForRequests(2))
  })

  it('checks the services of upstream.routes too', async () => {
    const [device, camera] = [await startDevice(), await startDevice()]
    const routes = { '/cam/': { url: camera.url, health: { path: '/' } } }
    const config = { upstream: { routes } }
    const sidecar = await startSidecar({ device, config })
    await camera.waitForRequests(1)
    await expect.poll(() => ready(sidecar)).toEqual(READY)
    await camera.stop()
    await sidecar.clock.advance(INTERVAL)
    await expect.poll(() => ready(sidecar)).toEqual(NOT_READY)
  })

  it('that a stop cuts off says nothing of the device', async () => {
    const device = await startDevice(() => {})
    const sidecar = await startSidecar({ device, config: { upstream: { health: { path: '/' } } } })
    await device.waitForRequests(1)
    await sidecar.stop()
    expect(sidecar.logLines().filter((line) => line.includes('"level":50'))).toEqual([])
  })

  it('is off by default, and readiness then does not depend on the device', async () => {
    const device = await startDevice()
    const sidecar = await startSidecar({ device })
    const token = await sidecar.token()
    await device.stop()
    expect((await sidecar.request({ token })).status).toBe(500)
    expect(await ready(sidecar)).toEqual(READY)
  })
})

it('C18 a bug in a health check is reported as one, and says nothing about the device', async () => {
  const bug = new TypeError('x is not a function')
  const connections: Partial<Connections> = {
    clock: stillClock(),
    borrow() {
      throw bug
    },
  }
  const results: boolean[] = []
  const reported = await new Promise((onBug) => {
    const settings = { path: '/', interval: 60_000 }
    const inPlace = <T>(send: () => Promise<T>): Promise<T> => send()
    const events = { onResult: (up: boolean) => results.push(up), inPlace, onFault() {}, onBug }
    const check = createHealthCheck(settings, connections as Connections, createBreaker(stillClock()), events)
    closeLater(() => check?.close())
    check?.begin()
  })
  expect([reported, results]).toEqual([bug, []])
})

it('a health check asks nothing before it begins, and once if it begins twice', () => {
  let asked = 0
  const clock = stillClock()
  const connections: Partial<Connections> = {
    clock,
    borrow() {
      asked += 1
      throw new Error('not connected')
    },
  }
  const inPlace = <T>(send: () => Promise<T>): Promise<T> => send()
  const events = { onResult() {}, inPlace, onFault() {}, onBug() {} }
  const settings = { path: '/', interval: 60_000 }
  const check = createHealthCheck(settings, connections as Connections, createBreaker(clock), events)
  closeLater(() => check?.close())
  expect(asked).toBe(0)
  check?.begin()
  check?.begin()
  expect(asked).toBe(1)
})
