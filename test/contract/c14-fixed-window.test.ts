import { expect, it } from 'vitest'
import { flood, prepareFlood } from '../support/client.ts'
import { stillClock } from '../support/clock.ts'
import { limitsOf } from '../support/expectations.ts'
import type { Request, Response } from '../support/message.ts'
import { encodeForm, startSidecar } from '../support/sidecar.ts'
import { describeProtocols, describeTransports } from '../support/transports.ts'
import { acceptWebSockets, dial, refusedWebSocket } from '../support/websocket.ts'

const passed = (responses: readonly Response[]): Response[] =>
  responses.filter((response) => response.status !== 429)

const wrongGrant: Request = {
  method: 'POST',
  path: '/oauth/token',
  fields: ['Content-Type', 'application/x-www-form-urlencoded'],
  body: encodeForm({ grant_type: 'refresh_token', refresh_token: 'unknown' }),
}

describeTransports('C14 The fixed window', (transport) => {
  it('C14 exactly 60 of 200 concurrent requests pass and reach the device', async () => {
    const sidecar = await startSidecar({ clock: stillClock(), transport, documentedLimits: true })
    const token = await sidecar.token()
    const responses = await flood(sidecar, 200, { fields: ['Authorization', `Bearer ${token}`] })
    expect(responses.map((response) => response.status).filter((status) => status !== 429)).toEqual(
      Array(60).fill(200),
    )
    // Each has its own `remaining`: check and count are one step.
    const left = passed(responses).map((response) => limitsOf(response).remaining)
    expect(left.sort((a, b) => b - a)).toEqual(Array.from({ length: 60 }, (_, i) => 59 - i))
    expect(sidecar.device.requests).toHaveLength(60)
  })
})

describeProtocols('C14 The fixed window', (transport) => {
  it('C14 exactly 30 of 200 concurrent token requests pass', async () => {
    const sidecar = await startSidecar({ clock: stillClock(), transport, documentedLimits: true })
    const responses = await flood(sidecar, 200, {
      path: '/oauth/token',
      fields: ['Content-Type', 'application/x-www-form-urlencoded'],
      body: 'grant_type=refresh_token&refresh_token=unknown',
    })
    expect(passed(responses).map((response) => response.status)).toEqual(Array(30).fill(400))
  })

  it('C14 exactly 60 requests pass in each of two windows under a burst across their boundary', async () => {
    const clock = stillClock()
    const sidecar = await startSidecar({ transport, documentedLimits: true, clock })
    const token = await sidecar.token()
    const request = { fields: ['Authorization', `Bearer ${token}`] }
    const opening = await sidecar.request({ token })
    await clock.advance(59_999)
    const burst = await prepareFlood(sidecar, 200)
    const before = burst.send(request)
    await before[0]
    await clock.advance(1)
    const responses = [opening, ...(await Promise.all([...before, ...burst.send(request)]))]
    // The reset in each response says which window the request was counted in.
    const byWindow = Map.groupBy(responses, (response) => limitsOf(response).reset)
    expect(byWindow.size).toBe(2)
    const [first, second] = [...byWindow.keys()]
      .sort((a, b) => a - b)
      .map((reset) => byWindow.get(reset) ?? [])
    expect(passed(second ?? [])).toHaveLength(60)
    expect(passed(first ?? []).length).toBeLessThanOrEqual(60)
    expect(passed(first ?? [])).toHaveLength(Math.min(60, first?.length ?? 0))
    expect(sidecar.device.requests).toHaveLength(passed(responses).length)
  })

  it('C14 a window opens with the first request and closes exactly `window` seconds later', async () => {
    const clock = stillClock()
    const sidecar = await startSidecar({ transport, config: { limits: { api: { requests: 2 } } }, clock })
    const ask = async () => (await sidecar.request()).status
    expect([await ask(), await ask(), await ask()]).toEqual([401, 401, 429])
    await clock.advance(59_999)
    expect(await ask()).toBe(429)
    await clock.advance(1)
    expect([await ask(), await ask(), await ask()]).toEqual([401, 401, 429])
  })

  it('C14 H68 bursts at the boundaries never pass more than the limit in any of four windows, at either endpoint', async () => {
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

it('C14 H68 upgrades and requests share a window, also at its boundary', async () => {
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
