import { once } from 'node:events'
import net, { type Socket } from 'node:net'
import tls from 'node:tls'
import { beforeAll, expect, it } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
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
import { passUntilClosed } from '../support/waiting.ts'
import { behaviours, startBehavingDevice } from './behaving-device.ts'

/** Counts the open sockets of the clients, the sidecars and the device, which share this process. */
const countWires = (): number =>
  process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length
/** How many connections end in each way at once. */
const EACH = 2

interface Client {
  /** The TCP socket; in cleartext the same as `socket`. */
  readonly wire: Socket
  readonly socket: Socket
  readonly closed: Promise<unknown>
  /** Resolves when this text has arrived or the connection is closed. */
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
    // The kernel may reset connections that this process does not accept soon enough: that is also an end.
    await Promise.race([once(socket, 'secureConnect').catch(() => closed), closed])
    // A TLS socket destroyed within its own handshake event crashes this process in OpenSSL.
    await nextTurn()
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

interface ClientRequest {
  readonly path: string
  readonly fields?: readonly string[]
  readonly body?: string
}

function requestBytes(transport: string, token: string, { path, fields = [], body }: ClientRequest): Buffer {
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

/** The point at which the client ends the connection: after so many bytes of its request, or after this text arrived. */
const stages: readonly (readonly [name: string, request: ClientRequest, until?: number | string])[] = [
  ['before the first byte', { path: '/responds' }, 0],
  ['within a head', { path: '/responds' }, -12],
  ['within an upload', { path: '/responds', fields: upload, body: 'abc' }],
  ['before an upload', { path: '/responds', fields: [...upload, 'expect', '100-continue'], body: '' }],
  ['within a form', { path: '/oauth/token', fields: form, body: 'grant_type=' }],
  ['while the device is silent', { path: '/silent' }],
  ['while it is queued', { path: '/narrow/silent' }],
  ['within a download', { path: '/begins' }, 'begun'],
  ['behind a response', { path: '/responds' }, 'ok'],
  ['behind a refusal', { path: '/responds', fields: ['authorization', 'twice'] }, 'error'],
  [
    'behind the refusal of a large upload',
    { path: '/x', fields: ['authorization', 'twice', 'content-length', '1000000'], body: 'abc' },
    'error',
  ],
  ['behind an early response', { path: '/refuses-early', fields: upload, body: 'abc' }, 'no'],
  ...['', '/tolerant', '/auto'].flatMap((route) =>
    ['resets', 'closes', 'closes-in-head', 'malformed', 'garbage', 'silent'].map(
      (behaviour) =>
        [`behind a device: ${behaviour}${route}`, { path: `${route}/${behaviour}` }, ''] as const,
    ),
  ),
  ...['', '/tolerant'].flatMap((route) =>
    ['closes-in-body', 'resets-in-body', 'bad-chunk', 'begins'].map(
      (behaviour) =>
        [`within a response: ${behaviour}${route}`, { path: `${route}/${behaviour}` }, ''] as const,
    ),
  ),
]

const tunnels: typeof stages = [
  ['while the device is silent about an upgrade', { path: '/silent', ...asUpgrade }],
  ['in a tunnel', { path: '/switches', ...asUpgrade }, 'begun'],
  ...Object.keys(behaviours).map(
    (behaviour) => [`upgrade: ${behaviour}`, { path: `/${behaviour}`, ...asUpgrade }, ''] as const,
  ),
]

/** The ways in which a client ends its connection. */
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

/** All sidecars run for the whole file: what one of them leaves, the count at its end shows. */
const sidecars = new Map<Transport, { readonly sidecar: TestSidecar; readonly token: string }>()
let before = 0

/** Brings a connection to its end, or to a deadline that is to end it. */
async function endOnce(
  transport: Transport,
  [, request, until]: (typeof stages)[number],
  end: (client: Client) => unknown,
): Promise<Pick<Client, 'closed'>> {
  const { sidecar, token } = sidecars.get(transport) ?? expect.fail('not started yet')
  const client = await connectTo(sidecar.url, transport === 'h2' ? 'h2' : 'http/1.1')
  const bytes = requestBytes(transport, token, request)
  client.socket.write(typeof until === 'number' ? bytes.subarray(0, until) : bytes)
  const ended = typeof until === 'string' ? client.heard(until).then(() => end(client)) : end(client)
  // What it hears of a fault of the device may come at a deadline.
  if (until !== '') await ended
  return client
}

beforeAll(async () => {
  const device = await startBehavingDevice()
  const { url } = device
  const service = {
    max_in_flight: 1000,
    buffer_uploads: 'off',
  }
  const routes = {
    '/narrow/': { url, max_in_flight: 3 },
    '/tolerant/': { url, parser: 'tolerant' },
    '/auto/': { url, parser: 'auto' },
  }
  const config = {
    listen: { max_connections_per_client: 10_000 },
    upstream: { ...service, url, parser: 'strict', routes },
  }
  for (const transport of transports) {
    const sidecar = await startSidecar({ transport, device, config })
    sidecars.set(transport, { sidecar, token: await sidecar.token() })
    // A service that never answered would be tried with TLS, on a connection that is kept for many seconds.
    for (const at of ['', '/narrow', '/tolerant', '/auto'])
      await endOnce(transport, ['', { path: `${at}/responds` }, 'ok'], ({ socket }) => socket.end())
    await passUntilClosed(sidecar)
  }
  before = countWires()
})

describeTransports('H97 Closed connections', (transport) => {
  async function endAll(rows: typeof stages): Promise<void> {
    const clients = await Promise.all(
      rows.flatMap((row) =>
        Object.values(transport === 'h2' ? framed : ends).flatMap((end) =>
          Array.from({ length: EACH }, () => endOnce(transport, row, end)),
        ),
      ),
    )
    const { sidecar } = sidecars.get(transport) ?? expect.fail('not started yet')
    await passUntilClosed(sidecar, 5_000)
    await Promise.all(clients.map(({ closed }) => closed))
  }

  const cases = transport === 'h2' ? { requests: stages } : { requests: stages, tunnels }
  it.each(Object.entries(cases))(
    'H97 nothing is left of connections that end in every way at every point: %s',
    async (_name, rows) => {
      await endAll(rows)
      await expect.poll(countWires, { interval: 100 }).toBeLessThanOrEqual(before)
      const { sidecar } = sidecars.get(transport) ?? expect.fail('not started yet')
      const left = async (): Promise<number[]> => {
        const figure = await sidecar.figures()
        const held = ['memory_bytes', 'upstream_in_flight', 'upstream_queued', 'tunnels', 'connections']
        return held.map((name) => figure(`postern_${name}`))
      }
      await expect.poll(left).toEqual([0, 0, 0, 0, 0])
    },
  )
})
