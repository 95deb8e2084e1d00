import type http from 'node:http'
import { expect, it } from 'vitest'
import { passUntil } from '../support/clock.ts'
import { type Device, readBody, startDevice } from '../support/device.ts'
import type { Exchange } from '../support/message.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { revoke } from './watched-streams.ts'

const FINISH = { finish_uploads: true, max_in_flight: 1, response_timeout: '60s', idle_timeout: '40s' }

/** A device that reads each request to its end, and then waits for the test. */
interface Flashing {
  readonly device: Device
  /** The responses that are still to be sent, in order of arrival. */
  readonly held: http.ServerResponse[]
  /** Resolves when so many requests were read whole. */
  read(count: number): Promise<void>
}

async function startFlashing(): Promise<Flashing> {
  const held: http.ServerResponse[] = []
  const device = await startDevice(async (request, response) => {
    await readBody(request)
    held.push(response)
  })
  return {
    device,
    held,
    read: (count) => expect.poll(() => held.length, { interval: 1 }).toBeGreaterThanOrEqual(count),
  }
}

/** The client leaves, and the sidecar has seen it. */
async function leave(sidecar: TestSidecar, exchange: Exchange): Promise<void> {
  exchange.response.catch(() => {})
  exchange.abort()
  const ended = (): Promise<number> =>
    sidecar.metric('postern_requests_total', { endpoint: 'api', method: 'POST' })
  await expect.poll(ended, { interval: 1 }).toBe(1)
}

describeTransports('C24 upstream.finish_uploads', (transport) => {
  async function start(upstream: object = FINISH) {
    const flashing = await startFlashing()
    const sidecar = await startSidecar({ transport, device: flashing.device, config: { upstream } })
    return { ...flashing, sidecar, token: await sidecar.token() }
  }

  async function upload(
    { sidecar, token, read }: Awaited<ReturnType<typeof start>>,
    body: string | readonly string[] = 'firmware',
  ): Promise<Exchange> {
    const client = await sidecar.connect()
    const exchange = client.start({ path: '/flash', body, fields: ['Authorization', `Bearer ${token}`] })
    await read(1)
    return exchange
  }

  it.each([
    ['with a length', 'firmware'],
    ['of unknown length', ['firm', 'ware']],
  ] as const)(
    'C24 H364 an upload %s that the device has whole goes on when its client leaves, and holds its place',
    async (_name, body) => {
      const started = await start()
      const { sidecar, token, device, held } = started
      await leave(sidecar, await upload(started, body))
      const next = sidecar.request({ path: '/next', token })
      await expect.poll(() => sidecar.metric('postern_upstream_queued'), { interval: 1 }).toBe(1)
      expect(device.openConnections).toBe(1)
      expect(device.requests.map(({ target }) => target)).toEqual(['/flash'])
      held[0]?.end('flashed')
      await started.read(2)
      held[1]?.end('next')
      expect((await next).text).toBe('next')
      expect(await sidecar.metric('postern_upstream_in_flight')).toBe(0)
    },
  )

  it('C24 H364 so does one that the device began to answer before it had all of it', async () => {
    const held: http.ServerResponse[] = []
    const device = await startDevice(async (request, response) => {
      response.write('receiving\n')
      await readBody(request)
      held.push(response)
    })
    const sidecar = await startSidecar({ transport, device, config: { upstream: FINISH } })
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`, 'Content-Length', '8']
    const exchange = (await sidecar.connect()).start({ method: 'POST', open: true, fields })
    exchange.write('firm')
    await device.waitForRequests(1)
    // Over HTTP/2 the response is held for a moment.
    await passUntil(sidecar.clock, exchange.waitFor('receiving'))
    exchange.end('ware')
    await expect.poll(() => held.length, { interval: 1 }).toBe(1)
    await leave(sidecar, exchange)
    expect(device.openConnections).toBe(1)
    const finished = new Promise((resolve) => held[0]?.once('finish', resolve))
    held[0]?.end('flashed')
    await finished
  })

  it('C24 H364 without the key it is aborted', async () => {
    const started = await start({ max_in_flight: 1 })
    await leave(started.sidecar, await upload(started))
    await started.device.waitForOpenConnections(0)
  })

  it('C24 H364 an upload that the device does not have whole is aborted', async () => {
    const device = await startDevice(() => {})
    const sidecar = await startSidecar({ transport, device, config: { upstream: FINISH } })
    const token = await sidecar.token()
    const fields = ['Authorization', `Bearer ${token}`, 'Content-Length', '9']
    const exchange = (await sidecar.connect()).start({ method: 'POST', open: true, fields })
    exchange.write('firmware')
    await device.waitForRequests(1)
    await leave(sidecar, exchange)
    await device.waitForOpenConnections(0)
  })

  it('C24 H364 so is one that Postern has whole, and the device has not', async () => {
    const device = await startDevice(() => {})
    const upstream = { ...FINISH, buffer_uploads: '8MiB' }
    const sidecar = await startSidecar({ transport, device, config: { upstream } })
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
    // The head of a long upload is sent a moment before the body, and the clock stands still.
    const exchange = (await sidecar.connect()).start({ body: [Buffer.alloc(2 << 20)], fields })
    await device.waitForRequests(1)
    await leave(sidecar, exchange)
    await device.waitForOpenConnections(0)
  })

  it('C24 H364 a request without a body is aborted', async () => {
    const started = await start()
    const { sidecar, token } = started
    const client = await sidecar.connect()
    const exchange = client.start({ method: 'POST', fields: ['Authorization', `Bearer ${token}`] })
    await started.read(1)
    await leave(sidecar, exchange)
    await started.device.waitForOpenConnections(0)
  })

  it('C24 H364 the device has response_timeout from then on, however it answers', async () => {
    const started = await start()
    const { sidecar, device, held } = started
    await leave(sidecar, await upload(started))
    await sidecar.clock.advance(30_000)
    held[0]?.write('1 %\n')
    await expect.poll(() => device.openConnections, { interval: 1 }).toBe(1)
    await sidecar.clock.advance(29_999)
    expect(device.openConnections).toBe(1)
    await sidecar.clock.advance(1)
    await device.waitForOpenConnections(0)
    await expect.poll(() => sidecar.metric('postern_upstream_in_flight'), { interval: 1 }).toBe(0)
  })

  it('C24 H364 a response that its client did not read to the end is read to the end', async () => {
    const started = await start()
    const { sidecar, held } = started
    const exchange = await upload(started)
    exchange.pause()
    const response = held[0] ?? expect.unreachable()
    const ended = new Promise((resolve) => response.once('finish', resolve))
    response.end(Buffer.alloc(16 << 20))
    await expect.poll(() => response.writableLength, { interval: 1 }).toBeGreaterThan(0)
    await leave(sidecar, exchange)
    await ended
    await expect.poll(() => sidecar.metric('postern_upstream_in_flight'), { interval: 1 }).toBe(0)
  })

  it('C8 C24 H364 it ends with its login', async () => {
    const started = await start()
    const { sidecar, token, device } = started
    await leave(sidecar, await upload(started))
    expect(device.openConnections).toBe(1)
    expect(await revoke(sidecar, { all: true })).toBe(1)
    await device.waitForOpenConnections(0)
    await expect.poll(() => sidecar.metric('postern_upstream_in_flight'), { interval: 1 }).toBe(0)
    expect((await sidecar.request({ token })).status).toBe(401)
  })

  it.each([
    ['another', async () => {}],
    [
      'one after a reload',
      (sidecar: TestSidecar) =>
        sidecar.reload({ upstream: { ...FINISH, max_in_flight: 2, max_body: '1MiB' } }),
    ],
  ] as const)('C24 H364 a client has one such upload: %s ends with its client', async (_name, meanwhile) => {
    const started = await start({ ...FINISH, max_in_flight: 2 })
    const { sidecar, token, device, read } = started
    await leave(sidecar, await upload(started))
    await meanwhile(sidecar)
    const fields = ['Authorization', `Bearer ${token}`]
    const second = (await sidecar.connect()).start({ path: '/flash', body: 'again', fields })
    await read(2)
    expect(device.openConnections).toBe(2)
    second.response.catch(() => {})
    second.abort()
    await device.waitForOpenConnections(1)
    started.held[0]?.end('flashed')
    await expect.poll(() => sidecar.metric('postern_upstream_in_flight'), { interval: 1 }).toBe(0)
  })

  it('C24 C25 H364 it keeps its place for as long as it is answered', async () => {
    const started = await start({ ...FINISH, max_in_flight: 2 })
    const { sidecar, token, held, read, device } = started
    await leave(sidecar, await upload(started))
    held[0]?.write('1 %\n')
    const others = [1, 2].map(() => sidecar.request({ path: '/other', token }))
    await read(2)
    await sidecar.clock.advance(10_000)
    expect(device.requests).toHaveLength(2)
    held[1]?.end('first')
    await read(3)
    held[2]?.end('second')
    await Promise.all(others)
    expect(device.openConnections).toBe(2)
  })

  it('C24 H364 a stream ends with its client', async () => {
    const started = await start()
    const { sidecar, held } = started
    const exchange = await upload(started)
    held[0]?.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n')
    await exchange.waitFor('data: 1')
    await leave(sidecar, exchange)
    await started.device.waitForOpenConnections(0)
  })
})
