import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { startHoldingDevice } from '../support/device.ts'
import { expectError } from '../support/expectations.ts'
import { BrokenTransfer, type Exchange } from '../support/message.ts'
import { rawConnection } from '../support/raw.ts'
import { FORM_TYPE, startSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'
import { waitForQueued } from '../support/waiting.ts'
import { refusedWebSocket } from '../support/websocket.ts'

/** The end of a response: its status, or that it broke off. */
async function endOf({ response }: Exchange): Promise<number | 'broken'> {
  return response.then(
    ({ status }) => status,
    (error: unknown) => {
      if (error instanceof BrokenTransfer) return 'broken'
      throw error
    },
  )
}

describeProtocols('C25 The end of the grace of a stop', (transport) => {
  async function start(upstream: YamlPart = {}, clock?: MovableClock) {
    const holding = await startHoldingDevice()
    const sidecar = await startSidecar({
      transport,
      device: holding.device,
      ...(clock && { clock }),
      config: { upstream: { max_in_flight: 1, ...upstream } },
    })
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
    const first = (await sidecar.connect()).start({ path: '/first', fields })
    await holding.device.waitForRequests(1)
    return { ...holding, sidecar, fields, first }
  }

  it('C25 comes ten seconds after its beginning: what is at the device is cut, what waits is answered', async () => {
    const clock = stillClock()
    const { device, sidecar, fields, first } = await start(
      { response_timeout: '1h', queue: { timeout: '1h' } },
      clock,
    )
    const second = (await sidecar.connect()).start({ path: '/second', fields })
    await waitForQueued(sidecar, 1)
    const ends: unknown[] = []
    for (const exchange of [first, second]) void endOf(exchange).then((end) => ends.push(end))
    const stopped = sidecar.stop('usual')
    // The sidecar accepts no connection any more: it waits for the requests in flight.
    await expect.poll(() => rawConnection(sidecar.url).catch(() => 'refused')).toBe('refused')
    await clock.advance(9_999)
    const figures = await sidecar.figures()
    expect([figures('postern_upstream_in_flight'), figures('postern_upstream_queued'), ends]).toEqual([
      1,
      1,
      [],
    ])
    await clock.advance(1)
    expect(await endOf(second)).toBe(500)
    expect(await endOf(first)).toBe('broken')
    await stopped
    expect(device.requests).toHaveLength(1)
  })

  it.each([
    ['GET', undefined],
    ['PUT', 'whole'],
    ['PUT', 'chunked'],
  ] as const)(
    'C25 starts no %s that waits (body: %s): it is answered, the device gets none',
    async (method, body) => {
      const { device, sidecar, fields, first } = await start()
      const waiting: Exchange[] = []
      for (let i = 0; i < 3; i += 1) {
        const sent = body === undefined ? {} : { body: body === 'whole' ? 'x' : ['x', 'y'] }
        waiting.push((await sidecar.connect()).start({ path: `/${i}`, method, fields, ...sent }))
      }
      await waitForQueued(sidecar, 3)
      const stopped = sidecar.stop(0)
      for (const { response } of waiting) {
        const answer = await response
        expectError(answer, 500, 'overloaded')
        expect(answer.header('retry-after')).toMatch(/^[1-9]\d*$/)
      }
      expect(await endOf(first)).toBe('broken')
      await stopped
      expect(device.requests.map(({ target }) => target)).toEqual(['/first'])
    },
  )

  it('C25 answers several that wait on one connection, and those of a shared response', async () => {
    const { device, sidecar, fields, first } = await start({ share: { paths: ['/shared'] } })
    const connection = await sidecar.connect()
    const waiting = ['/a', '/shared', '/shared'].map(async (path) =>
      (transport === 'h2' ? connection : await sidecar.connect()).start({ path, fields }),
    )
    const exchanges = await Promise.all(waiting)
    await waitForQueued(sidecar, 2)
    const stopped = sidecar.stop(0)
    expect(await Promise.all(exchanges.map(endOf))).toEqual([500, 500, 500])
    expect(await endOf(first)).toBe('broken')
    await stopped
    expect(device.requests).toHaveLength(1)
  })

  it('C25 answers an upload whose first bytes have yet to come, and one that is collected', async () => {
    const { device, sidecar, fields } = await start()
    const expects = [...fields, 'Expect', '100-continue']
    const uploads = await Promise.all(
      [[...expects, 'Content-Length', '100'], expects].map(async (all) =>
        (await sidecar.connect()).start({ path: '/upload', method: 'PUT', fields: all, open: true }),
      ),
    )
    await Promise.all(uploads.map((upload) => upload.waitForInformational(100)))
    const stopped = sidecar.stop(0)
    expect(await Promise.all(uploads.map(endOf))).toEqual([500, 500])
    await stopped
    expect(device.requests).toHaveLength(1)
  })

  it('C25 answers logins that wait for their turn at the device', async () => {
    const { device } = await startHoldingDevice()
    const sidecar = await startSidecar({
      transport,
      device,
      config: {
        password: { file: undefined, device: true },
        upstream: { auth: { kind: 'basic', user: 'admin', check_path: '/check' } },
      },
    })
    const logIn = async (password: string): Promise<Exchange> =>
      (await sidecar.connect()).start({
        method: 'POST',
        path: '/oauth/token',
        fields: ['Content-Type', FORM_TYPE],
        body: `grant_type=password&password=${password}`,
      })
    const logins = [await logIn('first')]
    await device.waitForRequests(1)
    logins.push(await logIn('second'), await logIn('third'))
    // A refusal behind them: they have arrived.
    await sidecar.request({ token: 'none' })
    const stopped = sidecar.stop(0)
    expect(await Promise.all(logins.map(endOf))).toEqual([500, 500, 500])
    await stopped
    expect(device.requests).toHaveLength(1)
  })

  it.skipIf(transport === 'h2')(
    'C25 starts no WebSocket that waits for the login at the device',
    async () => {
      const { device } = await startHoldingDevice()
      const file = join(temporaryDirectory(), 'device-password')
      writeFileSync(file, 'secret')
      const auth = { kind: 'basic', user: 'admin', check_path: '/check', password: { file } }
      const sidecar = await startSidecar({ transport, device, config: { upstream: { auth } } })
      const refused = refusedWebSocket(sidecar.url, { token: await sidecar.token() })
      await device.waitForRequests(1)
      const stopped = sidecar.stop(0)
      expect((await refused).status).toBe(500)
      await stopped
      expect(device.requests.map(({ target }) => target)).toEqual(['/check'])
    },
  )
})
