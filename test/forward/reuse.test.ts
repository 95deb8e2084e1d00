import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { passUntil } from '../support/clock.ts'
import { type Device, startDevice } from '../support/device.ts'
import type { Request } from '../support/message.ts'
import type { RawPeer } from '../support/raw.ts'
import { nextRequest, OK, startRawDevice } from '../support/raw-device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'

/** A device that keeps its connections. `figures` are its requests, those with Connection: close, and its connections. */
async function startCounting(): Promise<{ readonly url: string; figures(): readonly number[] }> {
  const heads: string[] = []
  const { url, peers } = await startRawDevice(async (peer) => {
    for (;;) {
      heads.push(await nextRequest(peer))
      peer.write(OK)
    }
  })
  const closing = () => heads.filter((head) => /\r\nConnection: close\r\n/i.test(head)).length
  return { url, figures: () => [heads.length, closing(), peers.length] }
}

/** A device that sends `late` on all earlier connections whenever a connection brings a request. */
async function startLate(late: string) {
  const before: RawPeer[] = []
  return startRawDevice(async (peer) => {
    for (;;) {
      await nextRequest(peer)
      for (const earlier of before) earlier.socket.write(late)
      peer.write(OK)
      before.push(peer)
    }
  })
}

describeProtocols('upstream.reuse', (transport) => {
  it.concurrent.each(['strict', 'tolerant', 'auto'])(
    'H100 never: each request has its own connection, parser: %s',
    async (parser) => {
      const device = await startCounting()
      const sidecar = await startSidecar({
        transport,
        device,
        config: { upstream: { reuse: 'never', parser } },
      })
      const token = await sidecar.token()
      const connection = await sidecar.connect()
      const fields = ['Authorization', `Bearer ${token}`]
      const send = (request: Request = {}) =>
        passUntil(sidecar.clock, connection.send({ fields, ...request }))
      for (let i = 0; i < 3; i += 1) expect((await send()).text).toBe('ok')
      expect((await send({ body: 'a body' })).text).toBe('ok')
      expect((await send({ body: ['chunks'] })).text).toBe('ok')
      expect(device.figures()).toEqual([5, 5, 5])
    },
  )
})

describe('upstream.reuse', () => {
  it('H100 shared, the default: sequential requests use one connection', async () => {
    const device = await startCounting()
    const sidecar = await startSidecar({ device })
    const token = await sidecar.token()
    for (let i = 0; i < 3; i += 1) expect((await sidecar.request({ token })).text).toBe('ok')
    expect(device.figures()).toEqual([3, 0, 1])
  })

  it('H100 never: the connection is closed after the response, even if the device would keep it', async () => {
    const device = await startRawDevice(async (peer) => {
      await nextRequest(peer)
      peer.write(OK)
    })
    const sidecar = await startSidecar({ device, config: { upstream: { reuse: 'never' } } })
    expect((await sidecar.request({ token: await sidecar.token() })).text).toBe('ok')
    const { socket } = await device.waitForConnection(1)
    await expect.poll(() => socket.readableEnded).toBe(true)
  })

  it('H100 never: bytes that a device sends too late reach no client', async () => {
    const device = await startLate('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate')
    const sidecar = await startSidecar({ device, config: { upstream: { reuse: 'never' } } })
    const token = await sidecar.token()
    for (let i = 0; i < 10; i += 1)
      expect((await passUntil(sidecar.clock, sidecar.request({ token }))).text).toBe('ok')
  })

  it('H100 never: each health check has its own connection too', async () => {
    const device = await startCounting()
    const health = { path: '/', interval: '10s' }
    const { clock } = await startSidecar({ device, config: { upstream: { reuse: 'never', health } } })
    const requested = async (): Promise<number | undefined> => {
      await clock.advance(10_000)
      return device.figures()[0]
    }
    await expect.poll(requested).toBeGreaterThan(3)
    const [requests = 0, closing = 0, connections = 0] = device.figures()
    expect(closing).toBe(requests)
    expect(connections).toBeGreaterThanOrEqual(requests)
  })

  it('H100 never: the sign-in and the repeated request have their own connections too', async () => {
    const device = await startDevice((request, response) => {
      if (request.headers.authorization === undefined)
        response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="device"' })
      response.end('from the device')
    })
    const file = join(temporaryDirectory(), 'device-password')
    writeFileSync(file, 'secret\n')
    const auth = { kind: 'basic', user: 'admin', password: { file } }
    const sidecar = await startSidecar({ device, config: { upstream: { reuse: 'never', auth } } })
    expect((await sidecar.request({ token: await sidecar.token() })).status).toBe(200)
    expect(device.requests.length).toBeGreaterThan(2)
    expect(connectionsOf(device)).toEqual([device.requests.length, ['close']])
  })

  it('H100 each service has its own setting', async () => {
    const [device, camera, printer] = [await startDevice(), await startDevice(), await startDevice()]
    const routes = {
      '/cam/': { url: camera.url, reuse: 'shared' },
      '/print/': { url: printer.url, reuse: 'never' },
    }
    const sidecar = await startSidecar({ device, config: { upstream: { reuse: 'never', routes } } })
    const token = await sidecar.token()
    for (let i = 0; i < 3; i += 1)
      for (const path of ['/', '/cam/', '/print/']) await sidecar.request({ token, path })
    expect([device, camera, printer].map(connectionsOf)).toEqual([
      [3, ['close']],
      [1, ['keep-alive']],
      [3, ['close']],
    ])
  })

  it('H100 shared: the log warns once about a device that sends unsolicited bytes', async () => {
    for (const [reuse, stray, count] of [
      ['shared', OK, 1],
      ['shared', '\r\n', 0],
      ['never', OK, 0],
    ] as const) {
      const device = await startRawDevice(async (peer) => {
        for (;;) {
          await nextRequest(peer)
          peer.write(OK + stray)
        }
      })
      const sidecar = await startSidecar({ device, config: { upstream: { reuse, parser: 'strict' } } })
      const token = await sidecar.token()
      await sidecar.request({ token })
      await passUntil(sidecar.clock, sidecar.request({ token })).catch(() => {})
      const warnings = sidecar.logLines().filter((line) => /upstream\.reuse/.test(line))
      expect(warnings, `${reuse} ${JSON.stringify(stray)}`).toHaveLength(count)
    }
  })
})

function connectionsOf(device: Device): unknown[] {
  return [device.connections, [...new Set(device.requests.map((request) => request.header('Connection')))]]
}
