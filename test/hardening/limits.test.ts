import { describe, expect, it } from 'vitest'
import { connect } from '../support/client.ts'
import { stillClock } from '../support/clock.ts'
import { limitsOf } from '../support/limit-fields.ts'
import type { Request, Response } from '../support/message.ts'
import { encodeForm, startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { acceptWebSockets, dial, refusedWebSocket } from '../support/websocket.ts'

const passed = (answers: readonly Response[]): Response[] => answers.filter(({ status }) => status !== 429)

const wrongGrant: Request = {
  method: 'POST',
  path: '/oauth/token',
  fields: ['Content-Type', 'application/x-www-form-urlencoded'],
  body: encodeForm({ grant_type: 'refresh_token', refresh_token: 'unknown' }),
}

describeTransports('H68 bursts at the boundary', (transport) => {
  it('H68 never yield more than the limit, in window after window, whatever they ask for', async () => {
    const clock = stillClock()
    const config = { limits: { api: { requests: 7 }, oauth: { requests: 5 } } }
    const sidecar = await startSidecar({ transport, clock, config })
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
    clock.advance(60_000)
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
    // Each on another side of a boundary, as close to it as the clock can tell.
    for (const step of [0, 59_999, 1, 59_999, 1, 0, 59_998, 1, 1]) {
      clock.advance(step)
      await burst()
    }
    for (const [answers, limit] of [
      [api, 7],
      [oauth, 5],
    ] as const) {
      const windows = Map.groupBy(answers, (answer) => limitsOf(answer).reset)
      expect(windows.size).toBe(4)
      for (const window of windows.values()) {
        expect(passed(window)).toHaveLength(Math.min(limit, window.length))
      }
    }
    const forwarded = passed(api).filter(({ text }) => text === 'from the device')
    expect(sidecar.device.requests).toHaveLength(forwarded.length)
  })
})

const SAYS_WHO = [
  'X-Forwarded-For',
  'X-Real-IP',
  'X-Client-IP',
  'True-Client-IP',
  'CF-Connecting-IP',
  'X-Cluster-Client-IP',
]

describeTransports('H69 whoever pretends to be others', (transport) => {
  it('H69 stays one client, whatever the request says of who it is', async () => {
    const sidecar = await startSidecar({ transport, config: { limits: { api: { requests: 20 } } } })
    const tokens = await Promise.all(Array.from({ length: 5 }, () => sidecar.token()))
    const connections = await Promise.all(Array.from({ length: 10 }, () => sidecar.connect()))
    const answers = await Promise.all(
      Array.from({ length: 120 }, (_, i) => {
        const address = `198.51.100.${i}`
        const says = SAYS_WHO.flatMap((name) => [name, address])
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
          fields: ['Authorization', `Bearer ${tokens[i % 5]}`, ...says, ...rest],
        })
      }),
    )
    expect(passed(answers.filter((answer) => answer !== undefined))).toHaveLength(20)
    expect(sidecar.device.requests).toHaveLength(20)
  })
})

describe('H69 whoever has many addresses', () => {
  it('H69 resets nobody, and all that find no window share one', async () => {
    const config = { limits: { api: { requests: 3 }, max_keys: 10 } }
    const sidecar = await startSidecar({ config })
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
    // Nine found a window of their own, three the one that is shared.
    expect(statuses.filter((status) => status !== 429)).toHaveLength(12)
    expect(await ask('127.0.0.2')).toBe(429)
    expect(await sidecar.metric('postern_rate_windows', { endpoint: 'api' })).toBeLessThanOrEqual(11)
  })

  it('H69 of one /64 is one client, however an address is written', async () => {
    const config = { listen: { trusted_proxies: ['127.0.0.1'] }, limits: { api: { requests: 5 } } }
    const sidecar = await startSidecar({ config })
    const connection = await sidecar.connect()
    const answers: Response[] = []
    for (let i = 1; i <= 40; i += 1) {
      const tail = i.toString(16)
      const spellings = [
        `2001:db8:0:1::${tail}`,
        `2001:0DB8:0000:0001:0000:0000:0000:${tail.padStart(4, '0')}`,
        `[2001:db8:0:1::${tail}]`,
        `[2001:db8:0:1:${tail}::]:${4000 + i}`,
        `2001:db8:0:1:${tail}:${tail}:192.0.2.${i}`,
      ]
      answers.push(await connection.send({ fields: ['X-Forwarded-For', spellings[i % 5] ?? ''] }))
    }
    expect(passed(answers)).toHaveLength(5)
  })
})

describe('H70 a wall clock that jumps', () => {
  it.each([3_600_000, -3_600_000])('H70 by %i ms locks nobody out and lets nobody in', async (jump) => {
    const clock = stillClock()
    const config = { limits: { api: { requests: 2 }, oauth: { requests: 2 } } }
    const sidecar = await startSidecar({ clock, config })
    const token = await sidecar.token()
    const ask = async (): Promise<number> => (await sidecar.request({ token })).status
    expect(await ask()).toBe(200)
    clock.jumpWall(jump)
    // Neither window nor token has noticed.
    expect([await ask(), await ask()]).toEqual([200, 429])
    const refused = await sidecar.request({ token })
    expect(refused.header('Retry-After')).toBe('60')
    expect(limitsOf(refused).reset).toBe(Math.ceil((clock.wall() + 60_000) / 1000))
    clock.advance(60_000)
    clock.jumpWall(-2 * jump)
    expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 429])
    // The token lives its hour, by the time that has passed.
    clock.advance(3_540_000 - 1)
    expect(await ask()).toBe(200)
    clock.advance(1)
    expect(await ask()).toBe(401)
  })
})

describe('H68 upgrades', () => {
  it('H68 and requests share a window at its boundary, too', async () => {
    const clock = stillClock()
    const sidecar = await startSidecar({ clock, config: { limits: { api: { requests: 4 } } } })
    const { upgrades } = acceptWebSockets(sidecar.device)
    const token = await sidecar.token()
    for (const step of [0, 59_999, 1]) {
      clock.advance(step)
      const opened = Array.from({ length: 3 }, () => dial(sidecar.url, { token }))
      await Promise.all(
        opened.map((socket) => new Promise((settled) => socket.once('open', settled).once('error', settled))),
      )
      await Promise.all(Array.from({ length: 3 }, () => sidecar.request({ token })))
      expect((await refusedWebSocket(sidecar.url, { token })).status).toBe(429)
    }
    // Two windows, four of anything in each.
    expect(upgrades.length + sidecar.device.requests.length).toBe(8)
  })
})
