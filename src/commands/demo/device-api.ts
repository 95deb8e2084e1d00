import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../system/clock.ts'

export interface DeviceApiDeps {
  readonly clock: Clock
  readonly ports: Ports
  readonly eventInterval: number
  /** The device's own address. Its firmware writes it into redirects and ignores the Host field. */
  readonly ownAddress: () => string
}

type Handler = (req: IncomingMessage, res: ServerResponse, url: URL) => void | Promise<void>

const maxJsonBody = 4096

/** The HTTP API of the sample device, like old firmware: no login, no limits. */
export function createDeviceApi(
  deps: DeviceApiDeps,
): (req: IncomingMessage, res: ServerResponse) => Promise<void> {
  const { clock, ports } = deps
  const startedAt = clock.monotonic()
  const uptime = (): number => Math.floor((clock.monotonic() - startedAt) / 1000)

  const routes: Readonly<Record<string, Readonly<Record<string, Handler>>>> = {
    '/api/system': { GET: (_req, res) => sendJson(res, 200, { ...identity, uptime_seconds: uptime() }) },
    '/api/ports': { GET: (_req, res) => sendJson(res, 200, { ports: ports.all() }) },
    '/api/firmware': { POST: receiveFirmware },
    '/api/events': {
      GET: (req, res, url) =>
        streamEvents(req, res, {
          interval: deps.eventInterval,
          count: Number(url.searchParams.get('count') ?? Number.POSITIVE_INFINITY),
          makeEvent: () => ({ uptime_seconds: uptime(), watts: totalWatts(ports) }),
        }),
    },
    '/login': {
      GET: (_req, res) => {
        res.writeHead(302, { Location: `${deps.ownAddress()}/login.html` }).end()
      },
    },
    '/login.html': {
      GET: (_req, res) => {
        res.writeHead(200, { 'Content-Type': 'text/html' }).end(loginPage)
      },
    },
  }

  const portHandlers = (id: number): Readonly<Record<string, Handler>> => ({
    GET: (_req, res) => {
      const port = ports.find(id)
      sendJson(res, port ? 200 : 404, port ?? { error: 'no such port' })
    },
    PUT: async (req, res) => {
      const text = await readText(req, maxJsonBody)
      const change = text === undefined ? undefined : parsePortChange(text)
      if (change === undefined) return sendJson(res, 400, { error: 'the body must be {"enabled": BOOLEAN}' })
      const port = ports.change(id, change)
      sendJson(res, port ? 200 : 404, port ?? { error: 'no such port' })
    },
  })

  const handlersFor = (path: string): Readonly<Record<string, Handler>> | undefined => {
    const port = /^\/api\/ports\/(\d{1,4})$/.exec(path)
    if (port) return portHandlers(Number(port[1]))
    return Object.hasOwn(routes, path) ? routes[path] : undefined
  }

  return async (req, res) => {
    res.setHeader('Server', 'PowerDist-httpd/1.04')
    const url = URL.parse(`http://device${req.url ?? '/'}`)
    const handlers = url ? handlersFor(url.pathname) : undefined
    if (!url || !handlers) return sendJson(res, 404, { error: 'not found' })
    const method = req.method === 'HEAD' ? 'GET' : (req.method ?? '')
    const handler = Object.hasOwn(handlers, method) ? handlers[method] : undefined
    if (!handler) {
      res.setHeader('Allow', Object.keys(handlers).join(', '))
      return sendJson(res, 405, { error: 'method not allowed' })
    }
    await handler(req, res, url)
  }
}

const identity = {
  model: 'PowerDist 8',
  serial: 'PD8-0042-1979',
  firmware: '1.04',
  contact: 'rack 3, unit 17',
} as const

const loginPage =
  '<!DOCTYPE html><title>PowerDist 8</title><h1>PowerDist 8</h1><p>There is no login here.</p>\n'

function totalWatts(ports: Ports): number {
  return ports.all().reduce((sum, port) => sum + port.watts, 0)
}

function sendJson(res: ServerResponse, status: number, value: unknown): void {
  const body = `${JSON.stringify(value)}\n`
  res.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) })
  res.end(body)
}

async function readText(req: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of req) {
    const bytes = Buffer.from(chunk)
    size += bytes.length
    if (size <= maxBytes) chunks.push(bytes)
  }
  return size > maxBytes ? undefined : Buffer.concat(chunks).toString('utf8')
}

async function receiveFirmware(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of req) {
    hash.update(chunk)
    size += Buffer.from(chunk).length
  }
  sendJson(res, 200, { size, sha256: hash.digest('hex'), status: 'stored, reboot to apply' })
}

export interface EventStream {
  /** Time between events (ms); the first one is sent at once. */
  readonly interval: number
  readonly count: number
  readonly makeEvent: () => unknown
}

/** Sends `count` server-sent events, or fewer if the client leaves. */
export function streamEvents(req: IncomingMessage, res: ServerResponse, stream: EventStream): void {
  res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' })
  if (req.method === 'HEAD') {
    res.end()
    return
  }
  let sent = 0
  const sendEvent = (): void => {
    sent += 1
    res.write(`id: ${sent}\nevent: power\ndata: ${JSON.stringify(stream.makeEvent())}\n\n`)
    if (sent < stream.count || Number.isNaN(stream.count)) return
    clearInterval(timer)
    res.end()
  }
  const timer = setInterval(sendEvent, stream.interval)
  res.once('close', () => clearInterval(timer))
  sendEvent()
}

interface Port {
  readonly id: number
  readonly label: string
  readonly enabled: boolean
  readonly watts: number
}

type PortChange = Pick<Port, 'enabled'>

export interface Ports {
  readonly all: () => readonly Port[]
  readonly find: (id: number) => Port | undefined
  /** Applies a change; `undefined` if there is no such port. */
  readonly change: (id: number, change: PortChange) => Port | undefined
}

export function createPorts(count: number): Ports {
  const ports = new Map<number, Port>()
  for (let id = 1; id <= count; id++) {
    ports.set(id, { id, label: `outlet ${id}`, enabled: true, watts: 20 + id * 7 })
  }
  return {
    all: () => [...ports.values()].map(metered),
    find: (id) => {
      const port = ports.get(id)
      return port && metered(port)
    },
    change: (id, change) => {
      const port = ports.get(id)
      if (!port) return undefined
      const changed = { ...port, ...change }
      ports.set(id, changed)
      return metered(changed)
    },
  }
}

function metered(port: Port): Port {
  return port.enabled ? port : { ...port, watts: 0 }
}

/** Parses the JSON body of `PUT /api/ports/1`. Undefined if it is anything but `enabled`. */
function parsePortChange(text: string): PortChange | undefined {
  const { enabled, ...others } = objectIn(text)
  return typeof enabled === 'boolean' && Object.keys(others).length === 0 ? { enabled } : undefined
}

function objectIn(text: string): Readonly<Record<string, unknown>> {
  try {
    return { ...JSON.parse(text) }
  } catch {
    return {}
  }
}
