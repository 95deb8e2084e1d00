import { expect, it } from 'vitest'
import { passUntil } from '../support/clock.ts'
import { readBody, startDevice } from '../support/device.ts'
import { waitForQueued } from '../support/holding-device.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

/** The device gets an upload while the client still sends it. */
const STREAMING = { upstream: { buffer_uploads: 'off' } }
/** Longer than a test may take, so that an end by one of these deadlines fails it. */
const PATIENT = { upstream: { ...STREAMING.upstream, response_timeout: '10m', idle_timeout: '10m' } }

describeTransports('C24 Clients that leave', (transport) => {
  it.each(['before the response', 'within the response', 'within its upload'])(
    'C24 a client that leaves %s aborts the request at the device',
    async (when) => {
      const reached = Promise.withResolvers<void>()
      const aborted = Promise.withResolvers<void>()
      const device = await startDevice((incoming, response) => {
        response.once('close', () => aborted.resolve())
        if (when === 'within the response') response.write('some')
        incoming.on('data', () => reached.resolve())
        incoming.on('error', () => {})
        if (when !== 'within its upload') reached.resolve()
      })
      const sidecar = await startSidecar({ transport, device, config: PATIENT })
      const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
      const connection = await sidecar.connect()
      const exchange = connection.start(
        when === 'within its upload' ? { method: 'POST', fields, open: true } : { fields },
      )
      exchange.response.catch(() => {})
      if (when === 'within its upload') exchange.write('some')
      if (when === 'within the response') await exchange.waitFor('some')
      // The head of an upload is sent a moment before the body.
      await passUntil(sidecar.clock, reached.promise)
      exchange.abort()
      await aborted.promise
      await expect.poll(() => sidecar.metric('postern_upstream_in_flight')).toBe(0)
    },
  )

  it('C24 an upload that the client breaks off does not look whole to the device', async () => {
    const ended = Promise.withResolvers<string>()
    const device = await startDevice((incoming) => {
      incoming.on('error', () => {})
      incoming.on('end', () => ended.resolve('whole'))
      incoming.on('close', () => ended.resolve('broken'))
      incoming.resume()
    })
    const sidecar = await startSidecar({ transport, device, config: STREAMING })
    const connection = await sidecar.connect()
    const exchange = connection.start({
      method: 'POST',
      fields: ['Authorization', `Bearer ${await sidecar.token()}`],
      open: true,
    })
    exchange.response.catch(() => {})
    exchange.write('half of it')
    await device.waitForRequests(1)
    exchange.abort()
    expect(await ended.promise).toBe('broken')
  })

  it('C24 a hundred clients that leave within the response leave no connection and no request in flight', async () => {
    const device = await startDevice(async (incoming, response) => {
      response.write('some')
      await readBody(incoming)
    })
    const sidecar = await startSidecar({ transport, device, config: STREAMING })
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
    for (let round = 0; round < 10; round += 1) {
      const connections = await Promise.all(Array.from({ length: 10 }, () => sidecar.connect()))
      const left = Promise.all(
        connections.map(async (connection, i) => {
          const exchange = connection.start(i % 2 === 0 ? { fields } : { method: 'POST', fields, open: true })
          exchange.response.catch(() => {})
          if (i % 2 === 1) exchange.write('up')
          await exchange.waitFor('some')
          exchange.abort()
          connection.close()
        }),
      )
      await passUntil(sidecar.clock, left)
    }
    await device.waitForOpenConnections(0)
    expect(device.requests).toHaveLength(100)
    await expect.poll(() => sidecar.metric('postern_upstream_in_flight')).toBe(0)
    await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
  })
})

// Only in HTTP/2: a close in HTTP/1 may be a half-close, see `c20-half-closed.test.ts`.
describeTransports(
  'C24 Clients that leave in HTTP/2',
  (transport) => {
    it.each(['before the response', 'within the response'])(
      'C24 a client that closes its connection %s aborts its request and frees its place',
      async (when) => {
        const device = await startDevice((_incoming, response) => {
          if (when === 'within the response') response.write('some')
        })
        const sidecar = await startSidecar({ transport, device, config: PATIENT })
        const connection = await sidecar.connect()
        const exchange = connection.start({ fields: ['Authorization', `Bearer ${await sidecar.token()}`] })
        exchange.response.catch(() => {})
        if (when === 'within the response') await exchange.waitFor('some')
        await device.waitForRequests(1)
        connection.close()
        await device.waitForOpenConnections(0)
        await expect.poll(() => sidecar.metric('postern_upstream_in_flight')).toBe(0)
        await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
      },
    )
  },
  ['h2'],
)

describeTransports(
  'C24 Clients that leave in HTTP/1',
  (transport) => {
    it('C24 a client that only closes its sending side gets its response', async () => {
      const proceed = Promise.withResolvers<void>()
      const device = await startDevice(async (_request, response) => {
        await proceed.promise
        response.end('late but whole')
      })
      const sidecar = await startSidecar({ transport, device })
      const token = await sidecar.token()
      const raw = await rawConnection(sidecar.url)
      raw.end(`GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`)
      await Promise.race([device.waitForRequests(1), raw.closed])
      proceed.resolve()
      expect(await raw.closed).toContain('late but whole')
    })

    it.each(['Content-Length: 100', 'Transfer-Encoding: chunked'])(
      'C24 H58 an upload (%s) that breaks off in the queue leaves it at once and never reaches the device',
      async (framing) => {
        const proceed = Promise.withResolvers<void>()
        const device = await startDevice(async (_request, response) => {
          await proceed.promise
          response.end('done')
        })
        const upstream = { ...STREAMING.upstream, max_in_flight: 1 }
        const sidecar = await startSidecar({ transport, device, config: { upstream } })
        const token = await sidecar.token()
        const first = sidecar.request({ token })
        await device.waitForRequests(1)
        const raw = await rawConnection(sidecar.url)
        raw.write(
          `POST /up HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n${framing}\r\n\r\n3\r\nabc`,
        )
        await waitForQueued(sidecar, 1)
        raw.end()
        await waitForQueued(sidecar, 0)
        expect(await raw.closed).toMatch(/^HTTP\/1\.1 400 .*"invalid_request"/s)
        proceed.resolve()
        expect((await first).status).toBe(200)
        expect((await sidecar.request({ token })).status).toBe(200)
        expect(device.requests.map(({ target }) => target)).not.toContain('/up')
      },
    )

    it('C24 a client that resets its connection aborts its request at the device', async () => {
      const device = await startDevice(() => {})
      const sidecar = await startSidecar({ transport, device })
      const token = await sidecar.token()
      const raw = await rawConnection(sidecar.url)
      raw.write(`GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`)
      await device.waitForRequests(1)
      raw.reset()
      await device.waitForOpenConnections(0)
    })
  },
  ['http1', 'tls'],
)
