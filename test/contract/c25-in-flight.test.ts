import type { ServerResponse } from 'node:http'
import { expect, it } from 'vitest'
import { startHoldingDevice } from '../support/device.ts'
import { expectError, limitsOf, proxyError } from '../support/expectations.ts'
import { headOf, responsesIn } from '../support/http1-reader.ts'
import type { Exchange, Response } from '../support/message.ts'
import { rawConnection } from '../support/raw.ts'
import { startRawDevice } from '../support/raw-device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeProtocols, describeTransports, rowsOver } from '../support/transports.ts'
import { waitForQueued } from '../support/waiting.ts'

describeProtocols('C25 Places at the device', (transport) => {
  async function start(upstream: object, mode = 'contract') {
    const holding = await startHoldingDevice()
    const sidecar = await startSidecar({
      transport,
      device: holding.device,
      config: { upstream, status_codes: mode },
    })
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
    /** Sends a request on a connection of its own. */
    const ask = async (path: string): Promise<Exchange> => {
      const exchange = (await sidecar.connect()).start({ path, fields })
      exchange.response.catch(() => {})
      return exchange
    }
    return { ...holding, sidecar, ask }
  }

  it('C25 at most max_in_flight of 20 requests are at the device at once, and all are served', async () => {
    const { device, held, sidecar, ask } = await start({ max_in_flight: 3, queue: { size: 50 } })
    let atDevice = 0
    let most = 0
    device.server.on('request', (_request, response) => {
      atDevice += 1
      most = Math.max(most, atDevice)
      response.once('close', () => {
        atDevice -= 1
      })
    })
    const exchanges = await Promise.all(Array.from({ length: 20 }, (_, i) => ask(`/${i}`)))
    for (let served = 0; served < 20; served += 1) {
      await device.waitForRequests(served + 1)
      held[served]?.end('done')
    }
    const responses = await Promise.all(exchanges.map((exchange) => exchange.response))
    expect(responses.map((response) => [response.status, response.text])).toEqual(
      Array(20).fill([200, 'done']),
    )
    expect([1, 2, 3]).toContain(most)
    expect(device.connections).toBeLessThanOrEqual(3)
    expect(await sidecar.metric('postern_upstream_queued')).toBe(0)
    expect(await sidecar.metric('postern_upstream_in_flight')).toBe(0)
  })

  it('C25 queued requests are served in order of arrival', async () => {
    const { device, held, sidecar, ask } = await start({ max_in_flight: 1, queue: { size: 10 } })
    await ask('/first')
    await device.waitForRequests(1)
    for (let i = 1; i <= 5; i += 1) {
      await ask(`/${i}`)
      await waitForQueued(sidecar, i)
    }
    for (let i = 1; i <= 6; i += 1) {
      await device.waitForRequests(i)
      held[i - 1]?.end()
    }
    expect(device.requests.map(({ target }) => target)).toEqual(['/first', '/1', '/2', '/3', '/4', '/5'])
  })

  it.each([
    ['contract', 500],
    ['http', 503],
  ])(
    'C19 C25 a request past the queue is overloaded with Retry-After in %s mode: %i',
    async (mode, status) => {
      const { device, held, sidecar, ask } = await start({ max_in_flight: 1, queue: { size: 1 } }, mode)
      const first = await ask('/first')
      await device.waitForRequests(1)
      const second = await ask('/second')
      await waitForQueued(sidecar, 1)
      const refused = await (await ask('/third')).response
      expectError(refused, status, 'overloaded')
      expect(refused.header('Retry-After')).toMatch(/^[1-9]\d*$/)
      limitsOf(refused)
      expect(proxyError(refused)).toBe('connection_limit_reached')
      held[0]?.end('one')
      await device.waitForRequests(2)
      held[1]?.end('two')
      expect([(await first.response).text, (await second.response).text]).toEqual(['one', 'two'])
      expect(device.requests.map(({ target }) => target)).toEqual(['/first', '/second'])
    },
  )

  it('C25 a request that waits longer than queue.timeout is overloaded', async () => {
    const { sidecar, device, held, ask } = await start({
      max_in_flight: 1,
      queue: { size: 5, timeout: '5s' },
    })
    const first = await ask('/first')
    await device.waitForRequests(1)
    const waiting = await ask('/second')
    await waitForQueued(sidecar, 1)
    await sidecar.clock.advance(4_999)
    expect(await sidecar.metric('postern_upstream_queued')).toBe(1)
    await sidecar.clock.advance(1)
    expect(await sidecar.metric('postern_upstream_queued')).toBe(0)
    const late = await waiting.response
    expectError(late, 500, 'overloaded')
    expect(late.header('Retry-After')).toMatch(/^[1-9]\d*$/)
    held[0]?.end('still served')
    expect((await first.response).text).toBe('still served')
    expect(device.requests).toHaveLength(1)
  })

  it.each(['the response has ended', 'the device has cut it', 'its client has left'])(
    'C25 a place at the device is free once %s',
    async (how) => {
      const { device, held, ask } = await start({ max_in_flight: 1, queue: { size: 0 } })
      for (let round = 0; round < 3; round += 1) {
        const exchange = await ask(`/${round}`)
        await device.waitForRequests(round + 1)
        expectError(await (await ask('/refused')).response, 500, 'overloaded')
        const response = held[round] as ServerResponse // `waitForRequests` has just resolved
        const closed = new Promise((resolve) => response.once('close', resolve))
        if (how === 'the response has ended') {
          response.end('done')
          expect((await exchange.response).text).toBe('done')
        } else if (how === 'the device has cut it') {
          response.writeHead(200, { 'Content-Length': 100 })
          response.write('some', () => response.destroy())
          await expect(exchange.response).rejects.toThrow()
        } else exchange.abort()
        await closed
      }
      const last = await ask('/last')
      await device.waitForRequests(4)
      held[3]?.end('at last')
      expect((await last.response).text).toBe('at last')
    },
  )

  it('C25 a place at the device is held until the response body has ended', async () => {
    const { device, held, ask } = await start({ max_in_flight: 1, queue: { size: 0 } })
    const exchange = await ask('/streaming')
    await device.waitForRequests(1)
    held[0]?.write('first')
    await exchange.waitFor('first')
    expectError(await (await ask('/refused')).response, 500, 'overloaded')
    held[0]?.end('last')
    expect((await exchange.response).text).toBe('firstlast')
  })

  it('C25 a client that leaves the queue makes room in it, and its request never reaches the device', async () => {
    const { device, held, sidecar, ask } = await start({ max_in_flight: 1, queue: { size: 1 } })
    await ask('/first')
    await device.waitForRequests(1)
    const impatient = await ask('/impatient')
    await waitForQueued(sidecar, 1)
    impatient.abort()
    await waitForQueued(sidecar, 0)
    const patient = await ask('/patient')
    await waitForQueued(sidecar, 1)
    held[0]?.end()
    await device.waitForRequests(2)
    held[1]?.end('served')
    expect((await patient.response).text).toBe('served')
    expect(device.requests.map(({ target }) => target)).toEqual(['/first', '/patient'])
  })

  it('C25 a request to a device that is down frees its place', async () => {
    const { device, sidecar, ask } = await start({ max_in_flight: 1, queue: { size: 0 } })
    await device.stop()
    for (let i = 0; i < 3; i += 1) {
      expectError(await (await ask('/')).response, 500, 'upstream_unavailable')
    }
    expect(await sidecar.metric('postern_upstream_in_flight')).toBe(0)
  })

  it('C25 token requests and refusals take no place at the device', async () => {
    const { device, sidecar, ask } = await start({ max_in_flight: 1, queue: { size: 0 } })
    await ask('/first')
    await device.waitForRequests(1)
    expect((await sidecar.request()).status).toBe(401)
    await sidecar.grant()
  })
})

it('C25 a client that leaves during the connect to the device frees its place at once', async () => {
  // The device accepts the connection and never answers the TLS handshake.
  const silent = await startRawDevice(async () => {})
  const sidecar = await startSidecar({
    device: { url: silent.url.replace('http:', 'https:') },
    config: { upstream: { connect_timeout: '15s', max_in_flight: 1 } },
  })
  const connection = await sidecar.connect()
  const token = await sidecar.token()
  const exchange = connection.start({ fields: ['Authorization', `Bearer ${token}`] })
  exchange.response.catch(() => {})
  await expect.poll(() => sidecar.metric('postern_upstream_in_flight')).toBe(1)
  exchange.abort()
  await expect.poll(() => sidecar.metric('postern_upstream_in_flight')).toBe(0)
})

describeTransports(
  'C25 A broken body',
  (transport) => {
    const BROKEN = 'Transfer-Encoding: chunked\r\n\r\nno size\r\n'

    it.each(
      rowsOver(transport, [
        ['one request is queued', { max_in_flight: 1, queue: { size: 10, timeout: '1h' } }],
        ['the queue is full', { max_in_flight: 1, queue: { size: 1, timeout: '1h' } }],
        ['the device has room', { max_in_flight: 9 }],
      ]),
    )(
      'C25 in one packet with its head is refused at once and takes no place when %s',
      async (_name, upstream) => {
        const { device } = await startHoldingDevice()
        const sidecar = await startSidecar({ transport, device, config: { upstream } })
        const shown = `Authorization: Bearer ${await sidecar.token()}`
        const ask = async (): Promise<void> => {
          const raw = await rawConnection(sidecar.url)
          raw.write(headOf('GET /held HTTP/1.1', 'Host: device', shown))
        }
        await ask()
        await device.waitForRequests(1)
        await ask()
        const busy = 'queue' in upstream ? [1, 1] : [2, 0]
        const load = async (): Promise<number[]> => [
          await sidecar.metric('postern_upstream_in_flight'),
          await sidecar.metric('postern_upstream_queued'),
        ]
        await expect.poll(load).toEqual(busy)
        const { connections } = device
        const raw = await rawConnection(sidecar.url)
        raw.write(`POST /x HTTP/1.1\r\nHost: device\r\n${shown}\r\n${BROKEN}`)
        const [response] = responsesIn(await raw.closed)
        expectError(response as Response, 400, 'invalid_request')
        expect(await load()).toEqual(busy)
        expect(device.connections).toBe(connections)
      },
    )
  },
  ['http1', 'tls'],
)
