import { expect, it } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import { flood } from '../support/autocannon.ts'
import { stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { expectUnharmed } from '../support/expectations.ts'
import {
  FRAME,
  frame,
  headers,
  hpack,
  ping,
  requestFields,
  resetStream,
  SETTING,
  settings,
} from '../support/http2-frames.ts'
import { type RawSession, rawSession } from '../support/http2-session.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { passUntilClosed } from '../support/waiting.ts'

const ATTACKER = '127.0.0.2'
const EACH = 10

it('H99 twelve slow attacks and floods at once leave a client of another address served, and all end at a deadline', async () => {
  const device = await startDevice((request, response) => {
    request.resume().on('error', () => {})
    response.end(request.url === '/big' ? Buffer.alloc(60_000) : 'from the device')
  })
  const sidecar = await startSidecar({
    transport: 'tls',
    device,
    config: { listen: { max_connections_per_client: 12 * EACH } },
  })
  const token = await sidecar.token()
  const authorization = ['authorization', `Bearer ${token}`]
  const url = sidecar.url
  const from = ATTACKER

  const flood = (piece: (turn: number) => Buffer) => async (): Promise<void> => {
    const session = await rawSession(url, { from })
    for (let turn = 0; turn < 100 && !session.raw.socket.destroyed; turn += 1) {
      session.send(piece(turn))
      await nextTurn()
    }
  }
  const http1 = (bytes: string) => async (): Promise<void> => {
    const raw = await rawConnection(url, { localAddress: from })
    raw.write(bytes)
  }
  const http2 =
    (...opening: readonly Buffer[]) =>
    (): Promise<RawSession> =>
      rawSession(url, { from, opening })
  const post = requestFields(authorization, { ':method': 'POST' })
  const attacks: readonly (() => Promise<unknown>)[] = [
    http1(''),
    http1('GET / HTTP/1.1\r\nHost: x\r\nX-Slow: '),
    http1(`POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Length: 9\r\n\r\nslow`),
    http1(`GET /big HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`),
    http2(),
    http2(settings(), frame(FRAME.headers, 0, 1, hpack(requestFields()))),
    http2(settings(), headers(1, post, false), frame(FRAME.data, 0, 1, Buffer.from('slow'))),
    http2(
      settings([SETTING.initialWindowSize, 0]),
      ...[1, 3, 5].map((id) => headers(id, requestFields(authorization, { ':path': '/big' }))),
    ),
    flood(() => Buffer.concat(Array<Buffer>(50).fill(ping()))),
    flood(() => Buffer.concat(Array<Buffer>(50).fill(settings()))),
    flood((turn) => Buffer.concat([headers(2 * turn + 1, requestFields()), resetStream(2 * turn + 1)])),
    flood((turn) =>
      turn === 0 ? frame(FRAME.headers, 0, 1, hpack(requestFields())) : frame(FRAME.continuation, 0, 1),
    ),
  ]

  const before = process.memoryUsage().rss
  const attacked = Promise.all(
    attacks.flatMap((attack) => Array.from({ length: EACH }, () => attack().catch(() => {}))),
  )
  const good = await sidecar.connect()
  let served = 0
  let over = false
  attacked.then(() => {
    over = true
  })
  while (!over || served < 50) {
    expect((await good.send({ fields: authorization })).status).toBe(200)
    served += 1
  }
  const grown = (process.memoryUsage().rss - before) / (1 << 20)
  good.close()

  expect(grown, 'MiB, for both ends of 120 connections').toBeLessThan(150)
  await passUntilClosed(sidecar)
  await expectUnharmed(sidecar, token, 64)
})

describeTransports(
  'A flood',
  (transport) => {
    it('H125 gets exactly the limit and a 429 for every other request, and a client within its limits is served beside it', async () => {
      const sidecar = await startSidecar({ transport, documentedLimits: true, clock: stillClock() })
      const authorization = `Bearer ${await sidecar.token()}`
      const statuses = new Map<number, number>()
      const flooding = flood({
        url: sidecar.url,
        requests: [{ method: 'GET', path: '/', headers: { authorization } }],
        connections: 20,
        pipelining: 1,
        until: { requestsEach: 20 },
        onResponse: (_, { status }) => statuses.set(status, (statuses.get(status) ?? 0) + 1),
      })
      const beside: number[] = []
      for (let i = 0; i < 20; i++) beside.push((await sidecar.postToken({ grant_type: 'password' })).status)
      const report = await flooding
      expect(report.faults).toEqual([])
      expect(Object.fromEntries(statuses)).toEqual({ 200: 60, 429: report.responses - 60 })
      expect(beside).toEqual(Array(20).fill(400))
      expect(sidecar.device.requests).toHaveLength(60)
    })
  },
  ['http1', 'tls'],
)
