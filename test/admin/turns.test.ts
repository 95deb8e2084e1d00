import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { expect, it, onTestFinished } from 'vitest'
import { turnOfLoop } from '../../src/system/clock.ts'
import { stillClock } from '../support/clock.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'
import { startAdmin } from './viewing.ts'

const HEALTHZ = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'
const countOf = (text: string): number => text.split('HTTP/1.1 200').length - 1

it('C26 the admin listener closes a connection that pipelines more than a few requests, and serves the others', async () => {
  const sidecar = await startSidecar()
  const calm = await rawConnection(sidecar.adminUrl)
  const attackers = await Promise.all(Array.from({ length: 20 }, () => rawConnection(sidecar.adminUrl)))
  for (const attacker of attackers) attacker.write(HEALTHZ.repeat(1500))
  for (const attacker of attackers) expect(countOf(await attacker.closed)).toBeLessThanOrEqual(8)
  calm.write(HEALTHZ)
  await calm.waitFor('"ok"')
  expect((await fetch(`${sidecar.adminUrl}/healthz`)).status).toBe(200)
})

/** The requests that Node parses from now on, by turn of the event loop. */
function countParsed(): ReadonlyMap<number, number> {
  const turns = new Map<number, number>()
  const count = (): void => void turns.set(turnOfLoop(), (turns.get(turnOfLoop()) ?? 0) + 1)
  subscribe('http.server.request.start', count)
  onTestFinished(() => void unsubscribe('http.server.request.start', count))
  return turns
}

it.each([
  // Of one client, five pieces of 4 KiB in a turn at most. With TLS each of them may complete a record of 16 KiB.
  ['HTTP', 'off', 4],
  ['TLS', 'on', 16],
])(
  'C26 over %s of the requests that twenty connections pipeline, Node parses a few before they are closed',
  async (_, tls, kibibytes) => {
    const sidecar = await startSidecar({ transport: 'tls', config: { admin: { tls } } })
    const attackers = await Promise.all(Array.from({ length: 20 }, () => rawConnection(sidecar.adminUrl)))
    const parsed = countParsed()
    for (const attacker of attackers) attacker.write(HEALTHZ.repeat(1500))
    await Promise.all(attackers.map(({ closed }) => closed))
    const piece = Math.ceil((kibibytes * 1024) / HEALTHZ.length)
    expect(Math.max(...parsed.values())).toBeLessThanOrEqual(5 * piece)
    expect([...parsed.values()].reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(20 * piece)
  },
)

it('C26 a connection to the admin listener may send many requests one after the other, and a few at once', async () => {
  const sidecar = await startSidecar()
  const connection = await rawConnection(sidecar.adminUrl)
  for (let i = 0; i < 50; i += 1) {
    connection.forget()
    connection.write(HEALTHZ.repeat(3))
    await connection.waitFor(/(?:"ok"[\s\S]*){3}/)
  }
})

it('C26 requests of many connections of a peer are all answered, each in a turn of the event loop that has room', async () => {
  const sidecar = await startSidecar()
  const connections = await Promise.all(Array.from({ length: 100 }, () => rawConnection(sidecar.adminUrl)))
  for (const connection of connections) connection.write(HEALTHZ.repeat(4))
  for (const connection of connections) await connection.waitFor(/(?:"ok"[\s\S]*){4}/)
})

const LOGIN =
  'POST /page/login HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\npassw'

it.each([
  ['nothing', ''],
  ['a part of a head', 'GET /healthz HTTP/1.1\r\nHo'],
  ['a part of a body', LOGIN],
])('H155 a connection that has sent %s for ten seconds closes', async (_, sent) => {
  const clock = stillClock()
  const viewed = await startAdmin({ clock, password: true })
  const late = await rawConnection(viewed.url)
  const calm = await rawConnection(viewed.url)
  late.write(sent)
  calm.write(HEALTHZ)
  await calm.waitFor('"ok"')
  await clock.advance(9_999)
  calm.forget()
  calm.write(HEALTHZ)
  await calm.waitFor('"ok"')
  expect(late.socket.closed).toBe(false)
  await clock.advance(1)
  await late.closed
  calm.forget()
  calm.write(HEALTHZ)
  await calm.waitFor('"ok"')
  // A connection that sends no further request closes, too.
  await clock.advance(10_000)
  await calm.closed
})

it('H155 a body that arrives after its response does not end the deadline for the next request', async () => {
  const clock = stillClock()
  const viewed = await startAdmin({ clock, password: true })
  const peer = await rawConnection(viewed.url)
  peer.write('POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345')
  await peer.waitFor('not_found')
  peer.write('67890GET /heal')
  await clock.advance(10_000)
  await peer.closed
})

it('H155 a body behind another request has its own ten seconds', async () => {
  const clock = stillClock()
  const viewed = await startAdmin({ clock, password: true })
  const peer = await rawConnection(viewed.url)
  peer.write(HEALTHZ + LOGIN)
  await peer.waitFor('"ok"')
  await clock.advance(10_000)
  await peer.closed
})

it('a kept connection says for how long, and one that closes does not', async () => {
  const sidecar = await startSidecar()
  const peer = await rawConnection(sidecar.adminUrl)
  peer.write(HEALTHZ)
  expect(await peer.waitFor('"ok"')).toContain('\r\nKeep-Alive: timeout=5\r\n')
  peer.forget()
  peer.write(HEALTHZ.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
  expect(await peer.closed).not.toContain('Keep-Alive')
})
