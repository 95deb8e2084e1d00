import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { connect } from 'node:tls'
import { expect, it } from 'vitest'
import { createHandshakes } from '../../src/listen/handshakes.ts'
import { createLingering } from '../../src/listen/linger.ts'
import { turnOfLoop } from '../../src/system/clock.ts'
import { TurnBudget } from '../../src/system/turn-budget.ts'
import { makeCertificate } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { needs, run } from '../support/tools.ts'
import { hasRead, nextAccepted } from '../support/waiting.ts'
import { startStoppableHttp1Server } from './http1-server.ts'

/** The first bytes of a ClientHello. */
const PARTIAL_HELLO = Buffer.from('16030100f8010000f40303', 'hex')

type Client = (url: string) => Promise<void>

const clients: Readonly<Record<string, readonly [reason: string, client: Client]>> = {
  'does not trust the certificate': ['tls_error', distrust],
  'speaks plain HTTP': ['plain_http', speakHttp],
  'speaks neither TLS nor HTTP': ['tls_error', (url) => sendAndWait(url, Buffer.from('\r\nhello\r\n'))],
  'begins a handshake and leaves': ['client_left', (url) => leave(url, PARTIAL_HELLO)],
  'connects and leaves': ['client_left', (url) => leave(url, Buffer.alloc(0))],
}

const NONE = { tls_error: 0, client_left: 0, handshake_timeout: 0, plain_http: 0 }

it.each(Object.entries(clients))(
  'a client that %s counts as one failed handshake',
  async (_what, [reason, client]) => {
    const sidecar = await startSidecar({ transport: 'tls' })
    await sidecar.token()
    expect(await failures(sidecar)).toEqual(NONE)
    await client(sidecar.url)
    await expect.poll(() => failuresOf(sidecar, reason)).toBe(1)
    await sidecar.token()
    expect(await failures(sidecar)).toEqual({ ...NONE, [reason]: 1 })
  },
)

it.each([
  ['connects and sends nothing', Buffer.alloc(0)],
  ['begins a handshake and stalls', PARTIAL_HELLO],
])('a client that %s counts as one failed handshake', async (_what, bytes) => {
  const sidecar = await startSidecar({ transport: 'tls' })
  const url = sidecar.url.replace('https:', 'http:')
  const accepted = nextAccepted(url)
  const raw = await rawConnection(url)
  raw.write(bytes)
  const socket = await accepted
  await hasRead(socket, bytes.length)
  await sidecar.clock.advance(9_999)
  expect(socket.destroyed).toBe(false)
  expect(await failures(sidecar)).toEqual(NONE)
  await sidecar.clock.advance(1)
  expect(socket.destroyed).toBe(true)
  expect(await failures(sidecar)).toEqual({ ...NONE, handshake_timeout: 1 })
  expect(await raw.closed).toBe('')
})

it('a handshake that a stop ends does not count as a client that left', async () => {
  const failed: string[] = []
  const { cert, key } = await makeCertificate()
  const valid = { from: { of: '', at: 0 }, until: { of: '', at: 0 } }
  const clock = stillClock()
  const handshakes = createHandshakes({
    clock,
    limits: { tlsTimeout: 60_000 },
    material: { cert, key, valid, names: [], authority: undefined },
    turnsOf: () => new TurnBudget(),
    readable: (wire) => wire,
    lingering: createLingering(clock),
    accept: () => {},
    onFailed: (reason) => failed.push(reason),
    plainHttpMessage: () => '',
  })
  const server = createServer(handshakes.begin).listen(0, '127.0.0.1')
  const accepted = once(server, 'connection')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // listening on TCP
  const raw = await rawConnection(`http://127.0.0.1:${port}`)
  const [socket] = await accepted
  const closed = once(socket, 'close')
  server.close()
  handshakes.drain()
  await clock.advance(499)
  expect(socket.destroyed).toBe(false)
  await clock.advance(1)
  await Promise.all([raw.closed, closed])
  expect(failed).toEqual([])
})

it('an HTTP/1 connection whose handshake ends only after the stop has begun is closed soon', async () => {
  const clock = stillClock()
  const { url, drain } = await startStoppableHttp1Server(() => {}, {}, clock)
  drain()
  const accepted = nextAccepted(url)
  const client = await rawConnection(url)
  const socket = await accepted
  await clock.advance(499)
  expect(socket.destroyed).toBe(false)
  await clock.advance(1)
  expect(await client.closed).toBe('')
})

/** A budget that knows in which turn of the event loop work was done. */
class RecordingBudget extends TurnBudget {
  readonly done: number[] = []

  override take(work: number): boolean {
    const taken = super.take(work)
    if (taken) this.done.push(turnOfLoop())
    return taken
  }

  override spend(work: number): void {
    super.spend(work)
    this.done.push(turnOfLoop())
  }
}

it('C26 of the handshakes that one client begins at once, a turn of the event loop does two, and all are done', async () => {
  const turns = new RecordingBudget()
  const { cert, key } = await makeCertificate()
  const valid = { from: { of: '', at: 0 }, until: { of: '', at: 0 } }
  let accepted = 0
  const clock = stillClock()
  const handshakes = createHandshakes({
    clock,
    limits: { tlsTimeout: 60_000 },
    material: { cert, key, valid, names: [], authority: undefined },
    turnsOf: () => turns,
    readable: (wire) => wire,
    lingering: createLingering(clock),
    accept(socket) {
      accepted += 1
      socket.destroy()
    },
    onFailed() {},
    plainHttpMessage: () => '',
  })
  const server = createServer(handshakes.begin).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closeLater(() => void server.close())
  const { port } = server.address() as AddressInfo // listening on TCP
  for (let i = 0; i < 20; i += 1) connect({ port, rejectUnauthorized: false }).on('error', () => {})
  await expect.poll(() => accepted).toBe(20)
  expect(turns.done).toHaveLength(20)
  const perTurn = Map.groupBy(turns.done, (turn) => turn)
  expect(Math.max(...[...perTurn.values()].map((each) => each.length))).toBeLessThanOrEqual(2)
})

function failuresOf(sidecar: TestSidecar, reason: string): Promise<number> {
  return sidecar.metric('postern_handshakes_failed_total', { reason })
}

async function failures(sidecar: TestSidecar): Promise<Record<string, number>> {
  const counts = await Promise.all(
    Object.keys(NONE).map(async (reason) => [reason, await failuresOf(sidecar, reason)]),
  )
  return Object.fromEntries(counts)
}

/** The client of Node would finish the handshake before it closes the connection. */
async function distrust(url: string): Promise<void> {
  needs('curl')
  expect((await run('curl', ['-sS', url])).stderr).toContain('certificate')
}

async function sendAndWait(url: string, bytes: Buffer): Promise<void> {
  const raw = await rawConnection(url.replace('https:', 'http:'))
  raw.write(bytes)
  await raw.closed
}

async function speakHttp(url: string): Promise<void> {
  const raw = await rawConnection(url.replace('https:', 'http:'))
  raw.end('GET / HTTP/1.1\r\nHost: device\r\n\r\n')
  await raw.closed
}

async function leave(url: string, bytes: Buffer): Promise<void> {
  const raw = await rawConnection(url.replace('https:', 'http:'))
  raw.write(bytes)
  raw.end()
  await raw.closed
}
