import { expect, it } from 'vitest'
import { passUntil } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { expectUnharmed } from '../support/expectations.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports, type Transport } from '../support/transports.ts'
import { passServing, passUntilClosed, waitForQueued } from '../support/waiting.ts'

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
})

/** Rounds. Fewer over TLS: one process pays for both sides of each handshake, and the handshake is not what is tested. */
const TIMES: Readonly<Record<Transport, number>> = { http1: 40, tls: 20, h2: 20 }
const AT_ONCE = 10

/** Runs `act` `times` times, ten at once. */
async function repeatedly(times: number, act: (turn: number) => Promise<void>): Promise<void> {
  let turn = 0
  async function worker(): Promise<void> {
    while (turn < times) {
      turn += 1
      await act(turn)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

describeTransports('C24 Clients that leave at once', (transport) => {
  it('C24 H58 every client that leaves within an upload or a download aborts its request at the device, and no socket stays open', async () => {
    /** By path: a response of the device that is sent in part, and one that has closed. */
    const begun = new Map<string, () => void>()
    const over = new Map<string, () => void>()
    const device = await startDevice((request, response) => {
      if (request.url === '/good') {
        response.end()
        return
      }
      response.once('close', over.get(request.url ?? '') ?? (() => {}))
      request.resume().on('error', () => {})
      response.write('some', begun.get(request.url ?? ''))
    })
    const sidecar = await startSidecar({
      transport,
      device,
      // None waits for the place of another: an upload that pauses would lose it.
      config: { upstream: { buffer_uploads: 'off', max_in_flight: 2 * AT_ONCE } },
    })
    const token = await sidecar.token()
    const fields = ['Authorization', `Bearer ${token}`]
    const baseline = process.getActiveResourcesInfo().length
    let mostAtDevice = 0

    await repeatedly(TIMES[transport], async (turn) => {
      const path = `/${turn}`
      const ended = Promise.withResolvers<void>()
      const sent = Promise.withResolvers<void>()
      over.set(path, ended.resolve)
      begun.set(path, sent.resolve)
      const connection = await sidecar.connect()
      const upload = turn % 2 === 0
      const exchange = connection.start(
        upload ? { method: 'POST', path, fields, open: true } : { path, fields },
      )
      exchange.response.catch(() => {})
      if (upload) {
        exchange.write('up')
        await sent.promise
        // Over HTTP/2 the sidecar holds a response that comes before the end of the upload for 50 ms.
        await passServing(sidecar, exchange.waitFor('some'), 50)
      }
      await exchange.waitFor('some')
      exchange.abort()
      // The clock stands still, so nothing of it waits for a deadline.
      await ended.promise
      mostAtDevice = Math.max(mostAtDevice, device.openConnections)
      over.delete(path)
      begun.delete(path)
      connection.close()
    })

    expect(mostAtDevice).toBeLessThanOrEqual(2 * AT_ONCE)
    await passUntilClosed(sidecar)
    await expectUnharmed(sidecar, token)
    await expect.poll(() => process.getActiveResourcesInfo().length).toBeLessThan(baseline + 20)
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
