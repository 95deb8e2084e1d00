import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Clock } from '../../system/clock.ts'
import { type Ports, parsePortChange } from './device-ports.ts'

export interface DeviceApiDeps {
  readonly clock: Clock
  readonly ports: Ports
  /** Milliseconds between two server-sent events. */
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
    '/api/system': {
      GET: (_req, res) => sendJson(res, 200, { ...identity, uptime_seconds: uptime() }),
    },
    '/api/ports': { GET: (_req, res) => sendJson(res, 200, { ports: ports.all() }) },
    '/api/firmware': { POST: receiveFirmware },
    '/api/backup': { GET: sendBackup },
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
      const change = text === undefined ? 'the body is too large' : parsePortChange(text)
      if (typeof change === 'string') return sendJson(res, 400, { error: change })
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

async function sendBackup(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const range = parseRange(req.headers.range, backupBytes)
  if (range === 'unsatisfiable') {
    res.writeHead(416, { 'Content-Range': `bytes */${backupBytes}`, 'Content-Length': 0 }).end()
    return
  }
  const part = range === 'absent' ? { first: 0, last: backupBytes - 1 } : range
  res.writeHead(range === 'absent' ? 200 : 206, {
    'Content-Type': 'application/octet-stream',
    'Content-Disposition': 'attachment; filename="powerdist.cfg"',
    'Content-Length': part.last - part.first + 1,
    'Accept-Ranges': 'bytes',
    ...(range === 'absent' ? {} : { 'Content-Range': `bytes ${part.first}-${part.last}/${backupBytes}` }),
  })
  if (req.method === 'HEAD') res.end()
  else await pipeline(Readable.from(backupContent(part)), res)
}

export interface EventStream {
  /** Time between events (ms); the first one is sent at once. */
  readonly interval: number
  /** The number of events; `Infinity` or `NaN` for a stream without end. */
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

const lineBytes = 64
const linesPerBlock = 1024
const blockBytes = lineBytes * linesPerBlock

/** The size of the sample device's configuration backup (bytes): large enough to show streaming. */
const backupBytes: number = 64 * blockBytes

/** A part of the backup: first and last byte, both included, as in `Content-Range`. */
interface ByteRange {
  readonly first: number
  readonly last: number
}

/** The bytes of the backup within `range`, generated on demand. */
function* backupContent(range: ByteRange): Generator<Buffer> {
  for (let block = Math.floor(range.first / blockBytes); block * blockBytes <= range.last; block++) {
    const offset = block * blockBytes
    const bytes = makeBlock(block * linesPerBlock)
    yield bytes.subarray(Math.max(0, range.first - offset), Math.min(blockBytes, range.last + 1 - offset))
  }
}

function makeBlock(firstLine: number): Buffer {
  let text = ''
  for (let line = firstLine; line < firstLine + linesPerBlock; line++) {
    const setting = `${String(line).padStart(7, '0')} set outlet ${(line % 8) + 1} delay ${(line * 7919) % 3600}`
    text += `${setting.padEnd(lineBytes - 1)}\n`
  }
  return Buffer.from(text, 'latin1')
}

/**
 * Parses a `Range` field (RFC 9110 §14.2). Anything other than one range counts as absent, which the clause allows. The response
 * to `unsatisfiable` is 416.
 */
function parseRange(field: string | undefined, size: number): ByteRange | 'absent' | 'unsatisfiable' {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(field ?? '')
  if (!match) return 'absent'
  const [, from = '', to = ''] = match
  if (from === '' && to === '') return 'absent'
  if (from === '') {
    const length = Math.min(Number(to), size)
    return length === 0 ? 'unsatisfiable' : { first: size - length, last: size - 1 }
  }
  const first = Number(from)
  const last = to === '' ? size - 1 : Math.min(Number(to), size - 1)
  if (to !== '' && Number(to) < first) return 'absent'
  return first >= size ? 'unsatisfiable' : { first, last }
}
