import { describe, expect, it } from 'vitest'
import { createBreaker, startHealthCheck } from '../../src/device/breaker.ts'
import type { Connections } from '../../src/device/connections.ts'
import { systemClock } from '../../src/system/clock.ts'
import { closeLater } from '../support/cleanup.ts'
import { send } from '../support/client.ts'
import { stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'

async function ready(sidecar: TestSidecar): Promise<unknown> {
  const { status, text } = await send({ transport: 'http1', url: sidecar.adminUrl, path: '/readyz' })
  return [status, JSON.parse(text)]
}

const READY = [200, { ready: true }]
const NOT_READY = [503, { ready: false, reasons: ['the device does not respond'] }]

describe('upstream.health', () => {
  it('updates readiness and postern_upstream_up without any client request', async () => {
    const device = await startDevice()
    const config = { upstream: { connect_timeout: '300ms', health: { path: '/alive?', interval: '20ms' } } }
    const sidecar = await startSidecar({ device, config })
    expect((await device.waitForRequests(2)).target).toBe('/alive?')
    expect(await ready(sidecar)).toEqual(READY)
    expect(await sidecar.metric('postern_upstream_up')).toBe(1)
    await device.stop()
    await expect.poll(() => ready(sidecar)).toEqual(NOT_READY)
    expect(await sidecar.metric('postern_upstream_up')).toBe(0)
  })

  it('takes a status of 500 and above for a device that is down, and any other for one that is up', async () => {
    const device = await startDevice()
    let status = 503
    device.handle((_, response) => response.writeHead(status).end())
    const config = { upstream: { health: { path: '/', interval: '20ms' } } }
    const sidecar = await startSidecar({ device, config })
    await expect.poll(() => ready(sidecar)).toEqual(NOT_READY)
    status = 401
    await expect.poll(() => ready(sidecar)).toEqual(READY)
  })

  it('ends although the body of a response does not', async () => {
    const device = await startDevice((_, response) => {
      const dripping = setInterval(() => response.write(' '), 50)
      response.once('close', () => clearInterval(dripping))
    })
    await startSidecar({ device, config: { upstream: { health: { path: '/', interval: '20ms' } } } })
    await device.waitForRequests(2)
  })

  it('checks the services of upstream.routes too', async () => {
    const [device, camera] = [await startDevice(), await startDevice()]
    const routes = { '/cam/': { url: camera.url, health: { path: '/', interval: '20ms' } } }
    const config = { upstream: { connect_timeout: '300ms', routes } }
    const sidecar = await startSidecar({ device, config })
    await camera.waitForRequests(2)
    expect(await ready(sidecar)).toEqual(READY)
    await camera.stop()
    await expect.poll(() => ready(sidecar)).toEqual(NOT_READY)
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
    clock: systemClock,
    borrow() {
      throw bug
    },
  }
  const results: boolean[] = []
  const reported = await new Promise((onBug) => {
    const settings = { path: '/', interval: 60_000 }
    const events = { onResult: (up: boolean) => results.push(up), onFault() {}, onBug }
    const check = startHealthCheck(settings, connections as Connections, createBreaker(stillClock()), events)
    closeLater(() => check?.close())
  })
  expect([reported, results]).toEqual([bug, []])
})
