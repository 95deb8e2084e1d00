import { describe, expect, it } from 'vitest'
import { connect } from '../support/client.ts'
import { stillClock } from '../support/clock.ts'
import { limitsOf } from '../support/limit-fields.ts'
import type { Request, Response } from '../support/message.ts'
import { encodeForm, startSidecar } from '../support/sidecar.ts'
import { describeProtocols, describeTransports } from '../support/transports.ts'
import { acceptWebSockets, dial, refusedWebSocket } from '../support/websocket.ts'

const passed = (responses: readonly Response[]): Response[] =>
  responses.filter(({ status }) => status !== 429)

const wrongGrant: Request = {
  method: 'POST',
  path: '/oauth/token',
  fields: ['Content-Type', 'application/x-www-form-urlencoded'],
  body: encodeForm({ grant_type: 'refresh_token', refresh_token: 'unknown' }),
}

describeTransports('H68 Bursts at the boundary of a window', (transport) => {
  it('H68 never pass more than the limit in any of four windows, at either endpoint', async () => {
    const clock = stillClock()
    const config = { limits: { api: { requests: 7 }, oauth: { requests: 5 } } }
    const sidecar = await startSidecar({ transport, clock, config })
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
    await clock.advance(60_000)
    const connections = await Promise.all(Array.from({ length: 6 }, () => sidecar.connect()))
    const requests: Request[] = [
      { fields },
      {},
      { fields, method: 'POST', body: 'x' },
      { method: 'OPTIONS', path: '*' },
    ]
    const api: Response[] = []
    const oauth: Response[] = []
    async function burst(): Promise<void> {
      await Promise.all(
        connections.map(async (connection, i) => {
          api.push(await connection.send(requests[i % requests.length] ?? {}))
          oauth.push(await connection.send(wrongGrant))
        }),
      )
    }
    // The steps (ms) put the bursts directly before, at and behind the boundaries of the windows.
    for (const step of [0, 59_999, 1, 59_999, 1, 0, 59_998, 1, 1]) {
      await clock.advance(step)
      await burst()
    }
    for (const [responses, limit] of [
      [api, 7],
      [oauth, 5],
    ] as const) {
      const windows = Map.groupBy(responses, (response) => limitsOf(response).reset)
      expect(windows.size).toBe(4)
      for (const window of windows.values()) {
        expect(passed(window)).toHaveLength(Math.min(limit, window.length))
      }
    }
    const forwarded = passed(api).filter(({ text }) => text === 'from the device')
    expect(sidecar.device.requests).toHaveLength(forwarded.length)
  })
})

const ADDRESS_FIELDS = [
  'X-Forwarded-For',
  'X-Real-IP',
  'X-Client-IP',
  'True-Client-IP',
  'CF-Connecting-IP',
  'X-Cluster-Client-IP',
]

describeProtocols('H69 A client with spoofed addresses', (transport) => {
  it('H69 stays one client, whatever address, token, path or connection its requests have', async () => {
    const sidecar = await startSidecar({
      transport,
      clock: stillClock(),
      config: { limits: { api: { requests: 20 } } },
    })
    const tokens = await Promise.all(Array.from({ length: 5 }, () => sidecar.token()))
    const connections = await Promise.all(Array.from({ length: 10 }, () => sidecar.connect()))
    const responses = await Promise.all(
      Array.from({ length: 120 }, (_, i) => {
        const address = `198.51.100.${i}`
        const spoofed = ADDRESS_FIELDS.flatMap((name) => [name, address])
        const rest = [
          'Forwarded',
          `for=${address}`,
          'Via',
          `1.1 ${address}`,
          'User-Agent',
          address,
          'Cookie',
          address,
        ]
        return connections[i % 10]?.send({
          path: `/${i}?client=${address}`,
          fields: ['Authorization', `Bearer ${tokens[i % 5]}`, ...spoofed, ...rest],
        })
      }),
    )
    expect(passed(responses.filter((response) => response !== undefined))).toHaveLength(20)
    expect(sidecar.device.requests).toHaveLength(20)
  })
})

describe('H69 A client with many addresses', () => {
  it('H69 resets no window of another client, and its addresses past max_keys share one window', async () => {
    const config = { limits: { api: { requests: 3 }, max_keys: 10 } }
    const sidecar = await startSidecar({ clock: stillClock(), config })
    const ask = async (from: string): Promise<number> => {
      const connection = await connect({ transport: 'http1', url: sidecar.url, from })
      const { status } = await connection.send({})
      connection.close()
      return status
    }
    for (let i = 0; i < 3; i += 1) await ask('127.0.0.2')
    expect(await ask('127.0.0.2')).toBe(429)
    const statuses: number[] = []
    for (let i = 0; i < 150; i += 1) statuses.push(await ask(`127.0.1.${i}`))
    // Nine addresses got a window of their own, and three requests passed in the shared one.
    expect(statuses.filter((status) => status !== 429)).toHaveLength(12)
    expect(await ask('127.0.0.2')).toBe(429)
    expect(await sidecar.metric('postern_rate_windows', { endpoint: 'api' })).toBeLessThanOrEqual(11)
  })

  it('H69 is one client within one /64, however an address is written', async () => {
    const config = { listen: { trusted_proxies: ['127.0.0.1'] }, limits: { api: { requests: 5 } } }
    const sidecar = await startSidecar({ clock: stillClock(), config })
    const connection = await sidecar.connect()
    const responses: Response[] = []
    for (let i = 1; i <= 40; i += 1) {
      const tail = i.toString(16)
      const spellings = [
        `2001:db8:0:1::${tail}`,
        `2001:0DB8:0000:0001:0000:0000:0000:${tail.padStart(4, '0')}`,
        `[2001:db8:0:1::${tail}]`,
        `[2001:db8:0:1:${tail}::]:${4000 + i}`,
        `2001:db8:0:1:${tail}:${tail}:192.0.2.${i}`,
      ]
      responses.push(await connection.send({ fields: ['X-Forwarded-For', spellings[i % 5] ?? ''] }))
    }
    expect(passed(responses)).toHaveLength(5)
  })
})

describe('H70 A jump of the wall clock', () => {
  it.each([3_600_000, -3_600_000])(
    'H70 by %i ms changes neither a window nor the lifetime of a token',
    async (jump) => {
      const clock = stillClock()
      const config = { limits: { api: { requests: 2 }, oauth: { requests: 2 } } }
      const sidecar = await startSidecar({ clock, config })
      const token = await sidecar.token()
      const ask = async (): Promise<number> => (await sidecar.request({ token })).status
      expect(await ask()).toBe(200)
      clock.jumpWall(jump)
      // Neither the window nor the token has changed.
      expect([await ask(), await ask()]).toEqual([200, 429])
      const refused = await sidecar.request({ token })
      expect(refused.header('Retry-After')).toBe('60')
      expect(limitsOf(refused).reset).toBe(Math.ceil((clock.wall() + 60_000) / 1000))
      await clock.advance(60_000)
      clock.jumpWall(-2 * jump)
      expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 429])
      // The token lives for its hour of elapsed time.
      await clock.advance(3_540_000 - 1)
      expect(await ask()).toBe(200)
      await clock.advance(1)
      expect(await ask()).toBe(401)
    },
  )
})

describe('H68 Upgrades', () => {
  it('H68 and requests share a window, also at its boundary', async () => {
    const clock = stillClock()
    const sidecar = await startSidecar({ clock, config: { limits: { api: { requests: 4 } } } })
    const { upgrades } = acceptWebSockets(sidecar.device)
    const token = await sidecar.token()
    for (const step of [0, 59_999, 1]) {
      await clock.advance(step)
      const opened = Array.from({ length: 3 }, () => dial(sidecar.url, { token }))
      await Promise.all(
        opened.map((socket) => new Promise((settled) => socket.once('open', settled).once('error', settled))),
      )
      await Promise.all(Array.from({ length: 3 }, () => sidecar.request({ token })))
      expect((await refusedWebSocket(sidecar.url, { token })).status).toBe(429)
    }
    // Two windows of four requests and upgrades.
    expect(upgrades.length + sidecar.device.requests.length).toBe(8)
  })
})
