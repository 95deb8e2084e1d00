import type { ServerResponse } from 'node:http'
import { expect, it } from 'vitest'
import { type Device, startDevice, startRawDevice } from '../support/device.ts'
import { expectError } from '../support/errors.ts'
import { limitsOf } from '../support/limit-fields.ts'
import type { Exchange, Response } from '../support/message.ts'
import { rawConnection } from '../support/raw.ts'
import { answersIn, typed } from '../support/raw-answers.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

interface Slow {
  readonly device: Device
  /** The requests that are being held, oldest first. */
  readonly held: { readonly path: string; readonly answer: ServerResponse }[]
  /** The most requests that were at the device at once. */
  readonly most: () => number
}

/** A device that holds every request until the test answers it. */
async function slowDevice(): Promise<Slow> {
  const held: Slow['held'] = []
  let here = 0
  let most = 0
  const device = await startDevice((request, answer) => {
    here += 1
    most = Math.max(most, here)
    answer.once('close', () => {
      here -= 1
    })
    held.push({ path: request.url ?? '', answer })
  })
  return { device, held, most: () => most }
}

describeTransports('C25', (transport) => {
  async function start(upstream: object, mode = 'contract') {
    const slow = await slowDevice()
    const sidecar = await startSidecar({
      transport,
      device: slow.device,
      config: { upstream, status_codes: mode },
    })
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
    /** A request on a connection of its own. */
    const ask = async (path: string): Promise<Exchange> => {
      const exchange = (await sidecar.connect()).start({ path, fields })
      exchange.response.catch(() => {})
      return exchange
    }
    return { ...slow, sidecar, ask }
  }

  const queued = (sidecar: TestSidecar, count: number) =>
    expect.poll(() => sidecar.metric('postern_upstream_queued'), { interval: 5 }).toBe(count)

  it('C25 at most max_in_flight requests are at the device at once, and all are served in turn', async () => {
    const { device, held, most, sidecar, ask } = await start({ max_in_flight: 3, queue: { size: 50 } })
    const exchanges = await Promise.all(Array.from({ length: 20 }, (_, i) => ask(`/${i}`)))
    for (let served = 0; served < 20; served += 1) {
      await device.waitForRequests(served + 1)
      held.shift()?.answer.end('done')
    }
    const answers = await Promise.all(exchanges.map((exchange) => exchange.response))
    expect(answers.map((answer) => [answer.status, answer.text])).toEqual(Array(20).fill([200, 'done']))
    expect(most()).toBeLessThanOrEqual(3)
    expect(device.connections).toBeLessThanOrEqual(3)
    expect(await sidecar.metric('postern_upstream_queued')).toBe(0)
    expect(await sidecar.metric('postern_upstream_in_flight')).toBe(0)
  })

  it('C25 those who wait are served in the order in which they came', async () => {
    const { device, held, sidecar, ask } = await start({ max_in_flight: 1, queue: { size: 10 } })
    await ask('/first')
    await device.waitForRequests(1)
    for (let i = 1; i <= 5; i += 1) {
      await ask(`/${i}`)
      await queued(sidecar, i)
    }
    for (let i = 1; i <= 6; i += 1) {
      await device.waitForRequests(i)
      held[i - 1]?.answer.end()
    }
    expect(held.map(({ path }) => path)).toEqual(['/first', '/1', '/2', '/3', '/4', '/5'])
  })

  it.each([
    ['contract', 500],
    ['http', 503],
  ])('C25 past the queue: overloaded, with Retry-After, in %s mode', async (mode, status) => {
    const { device, held, sidecar, ask } = await start({ max_in_flight: 1, queue: { size: 1 } }, mode)
    const first = await ask('/first')
    await device.waitForRequests(1)
    const second = await ask('/second')
    await queued(sidecar, 1)
    const refused = await (await ask('/third')).response
    expectError(refused, status, 'overloaded')
    expect(refused.header('Retry-After')).toMatch(/^[1-9]\d*$/)
    limitsOf(refused)
    held[0]?.answer.end('one')
    await device.waitForRequests(2)
    held[1]?.answer.end('two')
    expect([(await first.response).text, (await second.response).text]).toEqual(['one', 'two'])
    expect(held.map(({ path }) => path)).toEqual(['/first', '/second'])
  })

  it('C25 nobody waits longer than queue.timeout', async () => {
    const { device, held, ask } = await start({ max_in_flight: 1, queue: { size: 5, timeout: '200ms' } })
    const first = await ask('/first')
    await device.waitForRequests(1)
    const waiting = await ask('/second')
    const late = await waiting.response
    expectError(late, 500, 'overloaded')
    expect(late.header('Retry-After')).toMatch(/^[1-9]\d*$/)
    held[0]?.answer.end('still served')
    expect((await first.response).text).toBe('still served')
    expect(device.requests).toHaveLength(1)
  })

  it.each(['the answer has ended', 'the device has cut it', 'its client has left'])(
    'C25 a place is free again once %s',
    async (how) => {
      const { device, held, ask } = await start({ max_in_flight: 1, queue: { size: 0 } })
      for (let round = 0; round < 3; round += 1) {
        const exchange = await ask(`/${round}`)
        await device.waitForRequests(round + 1)
        expectError(await (await ask('/refused')).response, 500, 'overloaded')
        const { answer } = held[round] as Slow['held'][number] // just seen to be there
        const closed = new Promise((resolve) => answer.once('close', resolve))
        if (how === 'the answer has ended') {
          answer.end('done')
          expect((await exchange.response).text).toBe('done')
        } else if (how === 'the device has cut it') {
          answer.writeHead(200, { 'Content-Length': 100 })
          answer.write('some', () => answer.destroy())
          await expect(exchange.response).rejects.toThrow()
        } else exchange.abort()
        await closed
      }
      const last = await ask('/last')
      await device.waitForRequests(4)
      held[3]?.answer.end('at last')
      expect((await last.response).text).toBe('at last')
    },
  )

  it('C25 a place is held until the body has gone as well', async () => {
    const { device, held, ask } = await start({ max_in_flight: 1, queue: { size: 0 } })
    const exchange = await ask('/streaming')
    await device.waitForRequests(1)
    held[0]?.answer.write('first')
    await exchange.waitFor('first')
    expectError(await (await ask('/refused')).response, 500, 'overloaded')
    held[0]?.answer.end('last')
    expect((await exchange.response).text).toBe('firstlast')
  })

  it('C25 one who leaves the queue makes room in it and never reaches the device', async () => {
    const { device, held, sidecar, ask } = await start({ max_in_flight: 1, queue: { size: 1 } })
    await ask('/first')
    await device.waitForRequests(1)
    const impatient = await ask('/impatient')
    await queued(sidecar, 1)
    impatient.abort()
    await queued(sidecar, 0)
    const patient = await ask('/patient')
    await queued(sidecar, 1)
    held[0]?.answer.end()
    await device.waitForRequests(2)
    held[1]?.answer.end('served')
    expect((await patient.response).text).toBe('served')
    expect(held.map(({ path }) => path)).toEqual(['/first', '/patient'])
  })

  it('C25 a device that is down frees the places of those who found it so', async () => {
    const { device, sidecar, ask } = await start({ max_in_flight: 1, queue: { size: 0 } })
    await device.stop()
    for (let i = 0; i < 3; i += 1) {
      expectError(await (await ask('/')).response, 500, 'upstream_unavailable')
    }
    expect(await sidecar.metric('postern_upstream_in_flight')).toBe(0)
  })

  it('C25 the token endpoint and refusals need no place', async () => {
    const { device, sidecar, ask } = await start({ max_in_flight: 1, queue: { size: 0 } })
    await ask('/first')
    await device.waitForRequests(1)
    expect((await sidecar.request()).status).toBe(401)
    await sidecar.grant()
  })
})

it('C25 a client that leaves while the connection to the device is still being opened gives its place back at once', async () => {
  // It takes the connection and never answers the TLS handshake.
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
  await expect.poll(() => sidecar.metric('postern_upstream_in_flight'), { timeout: 3000 }).toBe(0)
})

describeTransports(
  'C25 a broken body',
  (transport) => {
    const BROKEN = 'Transfer-Encoding: chunked\r\n\r\nno size\r\n'

    it.each([
      ['one waits in line', { max_in_flight: 1, queue: { size: 10, timeout: '1h' } }],
      ['the line is full', { max_in_flight: 1, queue: { size: 1, timeout: '1h' } }],
      ['the device has room', { max_in_flight: 9 }],
    ])(
      'C25 in the packet of its head is refused at once, and takes no place, where %s',
      async (_name, upstream) => {
        const { device } = await slowDevice()
        const sidecar = await startSidecar({ transport, device, config: { upstream } })
        const shown = `Authorization: Bearer ${await sidecar.token()}`
        const ask = async (): Promise<void> => {
          const raw = await rawConnection(sidecar.url)
          raw.write(typed('GET /held HTTP/1.1', 'Host: device', shown))
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
        const [answer] = answersIn(await raw.closed)
        expectError(answer as Response, 400, 'invalid_request')
        expect(await load()).toEqual(busy)
        expect(device.connections).toBe(connections)
      },
    )
  },
  ['http1', 'tls'],
)
