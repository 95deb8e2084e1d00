import { once } from 'node:events'
import net, { Socket } from 'node:net'
import tls from 'node:tls'
import { queryObjects } from 'node:v8'
import { beforeAll, expect, it } from 'vitest'
import { DeviceConnection } from '../../src/device/device-connection.ts'
import { RoundTrip } from '../../src/forward/round-trip.ts'
import { LiveExchange } from '../../src/gate/live-exchanges.ts'
import { Http1Body } from '../../src/listen/http1/body.ts'
import { Http1Connection } from '../../src/listen/http1/connection.ts'
import { Http1Exchange } from '../../src/listen/http1/exchange.ts'
import { Http2Exchange } from '../../src/listen/http2/exchange.ts'
import {
  FRAME,
  frame,
  goaway,
  headers,
  PREFACE,
  requestFields,
  resetStream,
  settings,
} from '../support/http2-frames.ts'
import { clientContext } from '../support/raw.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports, type Transport, transports } from '../support/transports.ts'
import { manners, startManneredDevice } from './mannered-device.ts'

/** What the sidecar makes for a connection or a request. One base for all, so that one look at the heap counts them. */
class Made {}
const classes = [Http1Body, Http1Connection, Http1Exchange, Http2Exchange, DeviceConnection, LiveExchange]
for (const each of [...classes, RoundTrip]) Object.setPrototypeOf(each.prototype, Made.prototype)

/** Open connections, all three ends of them. */
const wires = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length
/** Each of these collects all garbage and walks over the heap: half a second of work, and not to be asked again and again. */
const made = (): number => queryObjects(Made, { format: 'count' })
const sockets = (): number => queryObjects(Socket, { format: 'count' })

/** Of each ending, so many at once. */
const EACH = 2

interface Client {
  /** What carries the connection: the connection itself in cleartext. */
  readonly wire: Socket
  readonly socket: Socket
  readonly closed: Promise<unknown>
  /** Resolves once something with this text has come, or nothing will. */
  heard(text: string): Promise<unknown>
}

async function connectTo(url: string, alpn: string): Promise<Client> {
  const { protocol, hostname, port } = new URL(url)
  const wire = net.connect(Number(port), hostname).on('error', () => {})
  const closed = new Promise((resolve) => wire.once('close', resolve))
  await once(wire, 'connect')
  let socket: Socket = wire
  if (protocol === 'https:') {
    socket = tls
      .connect({
        socket: wire,
        secureContext: clientContext,
        rejectUnauthorized: false,
        ALPNProtocols: [alpn],
      })
      .on('error', () => {})
    // A machine under load may be too slow for the sidecar's patience: also an end.
    await Promise.race([once(socket, 'secureConnect').catch(() => closed), closed])
    // Who destroys it within its handshake takes it from under OpenSSL, and this process ends.
    await new Promise(setImmediate)
  }
  let received = ''
  let wake = (): unknown => undefined
  socket.on('data', (bytes: Buffer) => {
    received += bytes.toString('latin1')
    wake()
  })
  const heard = (text: string): Promise<unknown> => {
    const came = new Promise<void>((resolve) => {
      wake = () => received !== '' && received.includes(text) && resolve()
    })
    wake()
    return Promise.race([came, closed])
  }
  return { wire, socket, closed, heard }
}

interface Asked {
  readonly path: string
  readonly fields?: readonly string[]
  readonly body?: string
}

function typedIn(transport: string, token: string, { path, fields = [], body }: Asked): Buffer {
  const all = ['authorization', `Bearer ${token}`, ...fields]
  const method = body === undefined ? 'GET' : 'POST'
  if (transport === 'h2') {
    const head = headers(1, requestFields(all, { ':method': method, ':path': path }), body === undefined)
    const data = body === undefined ? Buffer.alloc(0) : frame(FRAME.data, 0, 1, Buffer.from(body))
    return Buffer.concat([PREFACE, settings(), head, data])
  }
  const lines = all.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${all[i + 1]}\r\n`] : []))
  return Buffer.from(
    `${method} ${path} HTTP/1.1\r\nHost: device\r\n${lines.join('')}\r\n${body ?? ''}`,
    'latin1',
  )
}

const upload = ['content-length', '100']
const form = [...upload, 'content-type', 'application/x-www-form-urlencoded']
const upgrade = ['connection', 'Upgrade', 'upgrade', 'websocket', 'sec-websocket-version', '13']
const asUpgrade = { fields: [...upgrade, 'sec-websocket-key', 'dGhlIHNhbXBsZSBub25jZQ=='] }

/** Where its client is when the connection ends: after so many bytes, or after an answer with this text. */
const stages: readonly (readonly [name: string, asked: Asked, until?: number | string])[] = [
  ['before a byte', { path: '/answers' }, 0],
  ['amid a head', { path: '/answers' }, -12],
  ['amid an upload', { path: '/answers', fields: upload, body: 'abc' }],
  ['before an upload', { path: '/answers', fields: [...upload, 'expect', '100-continue'], body: '' }],
  ['amid a form', { path: '/oauth/token', fields: form, body: 'grant_type=' }],
  ['while the device thinks', { path: '/thinks' }],
  ['while it waits in line', { path: '/narrow/thinks' }],
  ['amid a download', { path: '/begins' }, 'begun'],
  ['behind an answer', { path: '/answers' }, 'ok'],
  ['behind a refusal', { path: '/answers', fields: ['authorization', 'twice'] }, 'error'],
  [
    'behind the refusal of a large upload',
    { path: '/x', fields: ['authorization', 'twice', 'content-length', '1000000'], body: 'abc' },
    'error',
  ],
  ['behind an early answer', { path: '/refuses-early', fields: upload, body: 'abc' }, 'no'],
  ...['', '/tolerant', '/auto'].flatMap((lane) =>
    ['resets', 'leaves', 'leaves-amid-head', 'malformed', 'garbage', 'thinks'].map(
      (manner) => [`behind a device that ${manner}${lane}`, { path: `${lane}/${manner}` }, ''] as const,
    ),
  ),
  ...['', '/tolerant'].flatMap((lane) =>
    ['leaves-amid-body', 'resets-amid-body', 'bad-chunk', 'begins'].map(
      (manner) => [`amid one that ${manner}${lane}`, { path: `${lane}/${manner}` }, ''] as const,
    ),
  ),
]

const tunnels: typeof stages = [
  ['while an upgrade is thought over', { path: '/thinks', ...asUpgrade }],
  ['in a tunnel', { path: '/switches', ...asUpgrade }, 'begun'],
  ...Object.keys(manners).map(
    (manner) => [`upgrade: ${manner}`, { path: `/${manner}`, ...asUpgrade }, ''] as const,
  ),
]

/** How the connection ends then. */
const ends: Readonly<Record<string, (client: Client) => unknown>> = {
  reset: ({ wire }) => wire.resetAndDestroy(),
  'half-close': ({ socket }) => socket.end(),
  nothing: () => {},
}
const framed: typeof ends = {
  ...ends,
  GOAWAY: ({ socket }) => socket.write(goaway(0)),
  'a stream reset': ({ socket }) => socket.end(resetStream(1, 0)),
  'no such frame': ({ socket }) => socket.write(frame(FRAME.data, 0, 0, Buffer.alloc(1))),
  'no HPACK': ({ socket }) => socket.write(frame(FRAME.headers, 4, 9, Buffer.alloc(99, 0xff))),
  'more than its window': ({ socket }) => socket.write(frame(FRAME.windowUpdate, 0, 0, Buffer.alloc(4))),
}

/** All sidecars run from the beginning to the end, so that two looks at the heap serve them all. */
const sidecars = new Map<Transport, { readonly sidecar: TestSidecar; readonly token: string }>()
let before = { wires: 0, made: 0, sockets: 0 }

async function endOnce(
  transport: Transport,
  [, asked, until]: (typeof stages)[number],
  end: (client: Client) => unknown,
): Promise<void> {
  const { sidecar, token } = sidecars.get(transport) ?? expect.fail('not started yet')
  const client = await connectTo(sidecar.url, transport === 'h2' ? 'h2' : 'http/1.1')
  const bytes = typedIn(transport, token, asked)
  client.socket.write(typeof until === 'number' ? bytes.subarray(0, until) : bytes)
  if (typeof until === 'string') await client.heard(until)
  end(client)
  await client.closed
}

beforeAll(async () => {
  const device = await startManneredDevice()
  const { url } = device
  const patience = { response_timeout: '200ms', idle_timeout: '200ms', max_in_flight: 1000 }
  const routes = {
    '/narrow/': { ...patience, url, max_in_flight: 3 },
    '/tolerant/': { ...patience, url, parser: 'tolerant' },
    '/auto/': { ...patience, url },
  }
  const time = '200ms'
  const listen = { header_timeout: time, body_timeout: time, idle_timeout: time }
  const config = {
    listen: { ...listen, max_connections_per_client: 10_000 },
    upstream: { ...patience, url, parser: 'strict', routes },
  }
  for (const transport of transports) {
    const sidecar = await startSidecar({ transport, device, config })
    sidecars.set(transport, { sidecar, token: await sidecar.token() })
    await endOnce(transport, ['', { path: '/answers' }, 'ok'], ({ socket }) => socket.end())
  }
  before = { wires: wires(), made: made(), sockets: sockets() }
})

describeTransports('H97 Nothing is left of a connection', (transport) => {
  const endAll = (rows: typeof stages): Promise<unknown> =>
    Promise.all(
      rows.flatMap((row) =>
        Object.values(transport === 'h2' ? framed : ends).flatMap((end) =>
          Array.from({ length: EACH }, () => endOnce(transport, row, end)),
        ),
      ),
    )

  const cases = transport === 'h2' ? { requests: stages } : { requests: stages, tunnels }
  it.each(Object.entries(cases))('that ends in any way at any point: %s', async (_name, rows) => {
    await endAll(rows)
    await expect.poll(wires, { interval: 100 }).toBeLessThanOrEqual(before.wires)
  })
})

it('H97 Nothing is left on the heap of all these connections', async () => {
  // A look at the heap takes most of a second, and on a busy machine many times that.
  await expect.poll(made, { interval: 100, timeout: 60_000 }).toBeLessThanOrEqual(before.made)
  await expect.poll(() => sockets() - before.sockets, { interval: 100 }).toBeLessThan(EACH)
})
