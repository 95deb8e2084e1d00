import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { loadPageFiles } from '../../src/admin/page-files.ts'
import type { Condition, GrantRow, PageEvents, Point, TimelineEntry } from '../../src/overview/model.ts'
import { closeLater } from './cleanup.ts'

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE

/** What the page server shows besides its defaults. */
export interface PageServerOptions {
  /** 0, the default: a free one. */
  readonly port?: number
  readonly grants?: number
  readonly condition?: Partial<Condition>
}

/** A server of the live page whose figures a test sets. */
export interface PageServer {
  readonly url: string
  readonly port: number
  /** Bodies of `page/revoke`, in the order of arrival. */
  readonly revocations: string[]
  /** The status of `page/events`; with 401 the page is the login page, too. */
  status: 200 | 401 | 503
  /** Changes the condition of the sidecar. */
  change(condition: Partial<Condition>): void
  /** Breaks off all streams. */
  drop(): void
  /** Sends an event to every viewer. */
  send<Name extends keyof PageEvents>(name: Name, data: PageEvents[Name]): void
  /** Ends all streams and listens no longer. */
  stop(): Promise<void>
}

const files = loadPageFiles()
let runs = 0

/** Starts the server: 15 minutes of plausible traffic, then a point each second. */
export async function startPageServer(options: PageServerOptions = {}): Promise<PageServer> {
  const run = `run-${++runs}`
  const start = Date.now()
  let condition = { ...calm(start), ...options.condition }
  const points: Point[] = []
  for (let second = 900; second >= 0; second--)
    points.push(pointAt(Math.floor(start / SECOND - second) * SECOND))
  const grants = grantRows(options.grants ?? 12, start)
  const viewers = new Set<ServerResponse>()
  const revocations: string[] = []

  function view(req: IncomingMessage, res: ServerResponse): void {
    const after = Number(req.headers['last-event-id'] ?? 0)
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' })
    viewers.add(res)
    res.on('close', () => viewers.delete(res))
    const begin: PageEvents['start'] = {
      about: { run, version: '0.1.0', node: '26.10.0', machine: 'gateway-17', startedAt: start - 3 * DAY },
      now: Date.now(),
      mayRevoke: true,
      signedIn: false,
      points: points.filter(({ time }) => time > after),
      timeline: timeline(start),
      condition,
    }
    write(res, 'start', begin)
    write(res, 'grants', { total: grants.length, changed: grants, removed: [] })
  }

  async function respond(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(req.url ?? '/', 'http://page')
    const name =
      pathname === '/'
        ? served.status === 401
          ? 'login.html'
          : 'index.html'
        : pathname.slice('/page/'.length)
    const file = files.get(name)
    if (pathname === '/page/events' && served.status !== 200)
      return void res.writeHead(served.status).end(JSON.stringify({ error: 'too_many_viewers' }))
    if (pathname === '/page/events') return view(req, res)
    if (pathname === '/page/requests') return json(res, requests(searchParams.get('id'), Date.now()))
    if (pathname === '/page/revoke') {
      const body = await text(req)
      revocations.push(body)
      const gone = grants.splice(0, body.includes('all') ? grants.length : 1).map(({ id }) => id)
      json(res, { revoked: gone.length })
      return send('grants', { total: grants.length, changed: [], removed: gone })
    }
    if (file === undefined) return void res.writeHead(404).end()
    const policy = file.type.startsWith('text/html') ? { 'Content-Security-Policy': CSP } : {}
    res.writeHead(name === 'login.html' ? 401 : 200, { 'Content-Type': file.type, ...policy }).end(file.body)
  }

  const server = createServer((req, res) => void respond(req, res))
  server.listen(options.port ?? 0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // it listens on TCP

  function send<Name extends keyof PageEvents>(name: Name, data: PageEvents[Name]): void {
    for (const viewer of viewers) write(viewer, name, data)
  }
  const timer = setInterval(() => {
    const point = pointAt(Date.now())
    points.push(point)
    send('point', point)
    if (Math.floor(point.time / SECOND) % 2 === 0) {
      const changed = grants.slice(0, 20).map((row) => ({ ...row, usedAt: point.time }))
      send('grants', { total: grants.length, changed, removed: [] })
    }
  }, SECOND)

  async function stop(): Promise<void> {
    clearInterval(timer)
    if (!server.listening) return
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  closeLater(stop)
  const served: PageServer = {
    url: `http://127.0.0.1:${port}/`,
    port,
    revocations,
    status: 200,
    change(more) {
      condition = { ...condition, ...more }
      send('condition', condition)
    },
    drop() {
      for (const viewer of viewers) viewer.destroy()
    },
    send,
    stop,
  }
  return served
}

function write<Name extends keyof PageEvents>(res: ServerResponse, name: Name, data: PageEvents[Name]): void {
  const id = 'time' in data ? `id: ${data.time}\n` : ''
  res.write(`${id}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
}

function json(res: ServerResponse, value: unknown): void {
  const status = value === null ? 404 : 200
  res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value))
}

/** A condition without alarms. */
export function calm(now: number): Condition {
  return {
    ready: true,
    reasons: [],
    enforce: true,
    services: [
      {
        route: null,
        url: 'http://192.0.2.7',
        up: true,
        since: now - 3 * DAY,
        checked: true,
        breaker: 'closed',
        failure: 'connection_timeout',
        failedAt: now - 5 * 60 * MINUTE,
        tolerant: false,
      },
      {
        route: '/video',
        url: 'http://192.0.2.7:8081',
        up: true,
        since: now - DAY,
        checked: false,
        breaker: 'closed',
        failure: null,
        failedAt: null,
        tolerant: false,
      },
    ],
    load: { inFlight: 3, maxInFlight: 8, queued: 0, queueSize: 64, tunnels: 2, maxTunnels: 16 },
    limits: {
      api: {
        requests: 60,
        window: MINUTE,
        per: 'client',
        usedUp: [
          { key: '198.51.100.23', until: now + 41 * SECOND, refused: 118 },
          { key: '2001:db8:7::/64', until: now + 12 * SECOND, refused: 4 },
        ],
        usedUpCount: 2,
      },
      oauth: { requests: 30, window: MINUTE, per: 'client', usedUp: [], usedUpCount: 0 },
    },
    tokens: { access: 31, refresh: 12, capacity: 10_000, unsaved: 0 },
    certificate: { from: now - 30 * DAY, until: now + 61 * DAY, selfSigned: true },
    password: { source: 'file', changedAt: now - 19 * DAY, problem: null },
    store: null,
  }
}

/** Between -1 and 1, and the same for the same number. */
const wave = (x: number): number =>
  Math.sin(x / 53) * 0.6 + Math.sin(x / 7.3) * 0.25 + Math.sin(x * 2.7) * 0.15

/** The point of a second: about 24 requests a second, and now and then a client over its limit. */
function pointAt(time: number): Point {
  const second = Math.floor(time / SECOND)
  const requests = Math.round(24 + 12 * wave(second))
  const over = second % 240 < 26 ? Math.round(7 + 4 * wave(second * 3)) : 0
  const denied = second % 37 === 0 ? 2 : 0
  const p50 = 14 * Math.exp(0.5 * wave(second / 2))
  const device = { p50, p99: 5.5 * p50 * Math.exp(0.6 * wave(second * 5)) }
  const refusals = {
    ...(over > 0 ? { rate_limited: over } : {}),
    ...(denied > 0 ? { unauthorized: denied } : {}),
  }
  return {
    time,
    requests: requests + over + denied,
    refusals,
    client: { p50: p50 * 1.05 + 0.4, p99: device.p99 * 1.15 },
    device,
    inFlight: Math.max(0, Math.round(3 + 3.4 * wave(second * 2))),
    queued: 0,
    connections: 14 + Math.round(3 * wave(second)),
    tunnels: 2,
  }
}

/** Logins of clients that were used lately. */
function grantRows(count: number, now: number): GrantRow[] {
  return Array.from({ length: count }, (_, i) => ({
    id: (0x9e3779b1 * (i + 1)).toString(16).padStart(16, '0').slice(-16),
    client: i % 5 === 4 ? `2001:db8:7:${(i % 97).toString(16)}::12` : `192.0.2.${20 + (i % 200)}`,
    issuedAt: now - (i + 1) * 7 * MINUTE,
    expiresAt: now + DAY * 14 - i * 31 * MINUTE,
    usedAt: i % 11 === 10 ? null : now - i * 9 * SECOND,
  }))
}

function timeline(now: number): TimelineEntry[] {
  const line = (
    id: number,
    ago: number,
    level: TimelineEntry['level'],
    what: string,
    details = '',
    times = 1,
  ) => ({
    id,
    time: now - ago,
    level,
    text: what,
    details,
    times,
  })
  return [
    line(1, 3 * DAY, 'info', 'listening', 'public: https://[::]:8443, admin: http://127.0.0.1:9464'),
    line(
      2,
      2 * DAY,
      'error',
      'configuration not reloaded: the previous one stays in effect',
      'problems: limits.api.requests: must be a whole number',
    ),
    line(3, 2 * DAY - 4 * MINUTE, 'info', 'configuration reloaded', 'changed: limits.api.requests'),
    line(
      4,
      5 * 60 * MINUTE,
      'warn',
      'the device does not respond to the health check',
      'reason: connection timeout',
      3,
    ),
    line(5, 5 * 60 * MINUTE - 20 * SECOND, 'info', 'the device responds to the health check again'),
    line(6, 40 * MINUTE, 'warn', 'tokens revoked', 'grants: 1, reason: operator'),
  ]
}

function requests(id: string | null, now: number): unknown {
  const refused = Array.from({ length: 14 }, (_, i) => ({
    id: (0xabcdef * (i + 3)).toString(16).padStart(32, '0'),
    time: now - 1_500 * i - 400,
    method: i % 3 === 2 ? 'POST' : 'GET',
    path: i % 3 === 2 ? '/oauth/token' : `/api/channels/${i}/state`,
    client: i % 4 === 3 ? '192.0.2.31' : '198.51.100.23',
    status: i % 4 === 3 ? 401 : 429,
    refusal: i % 4 === 3 ? 'unauthorized' : 'rate-limited',
    duration: 0.3,
  }))
  if (id === null) return refused
  const request = refused.find((row) => row.id === id)
  if (request === undefined) return null
  return {
    request,
    findings: [
      { title: 'Taken for', text: 'a request to the API (endpoint type api)' },
      {
        title: 'Window',
        text: 'request 118 of 60 in the window of the client 198.51.100.23, which closes at 12:04:00',
      },
      {
        title: 'Answered',
        text: '429 with Retry-After: 41. The token was not looked at, and the device not asked.',
      },
      { title: 'Time', text: '0.3 ms, all of it in Postern' },
    ],
  }
}
