import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { WebSocketServer } from 'ws'
import type { Clock } from '../../system/clock.ts'
import { formatHostPort } from '../../system/listen-address.ts'
import { isBug } from '../../system/setup-error.ts'

interface SampleDeviceDeps {
  readonly clock: Clock
  /** Time between server-sent events (ms). Default: 1000. */
  readonly eventInterval?: number
}

export interface SampleDevice {
  /**
   * Listens, by default on a free port of 127.0.0.1, and resolves to the base URL, without a slash at its end. Rejects with Node's
   * error if the address cannot be listened on. An IPv6 host has no brackets.
   */
  readonly start: (where?: { readonly host: string; readonly port: number }) => Promise<string>
  readonly stop: () => Promise<void>
}

/** Answers a request, or returns the object that is the answer. */
type Handler = (
  req: IncomingMessage,
  res: ServerResponse,
  url: URL,
) => object | undefined | Promise<object | undefined>

const IDENTITY = {
  model: 'PowerDist 8',
  serial: 'PD8-0042-1979',
  firmware: '1.04',
  contact: 'rack 3, unit 17',
}

const LOGIN_PAGE =
  '<!DOCTYPE html><title>PowerDist 8</title><h1>PowerDist 8</h1><p>There is no login here.</p>\n'

/** A small legacy power distribution unit for the demo. Its HTTP API has no access control. */
export function createSampleDevice({ clock, eventInterval = 1000 }: SampleDeviceDeps): SampleDevice {
  const outlets = Array.from({ length: 8 }, (_, i) => createOutlet(i + 1))
  const startedAt = clock.monotonic()
  const uptime = (): number => Math.floor((clock.monotonic() - startedAt) / 1000)
  /** The device's own address. Its firmware writes it into redirects and ignores the Host field. */
  let address = ''

  const handlers = new Map<string, Handler>([
    ['GET /api/system', () => ({ ...IDENTITY, uptime_seconds: uptime() })],
    ['GET /api/ports', () => ({ ports: outlets })],
    ...outlets.flatMap((outlet): [string, Handler][] => [
      [`GET /api/ports/${outlet.id}`, () => outlet],
      [`PUT /api/ports/${outlet.id}`, (req, res) => changeOutlet(outlet, req, res)],
    ]),
    ['POST /api/firmware', receiveFirmware],
    ['GET /api/events', streamEvents],
    ['GET /login', (_req, res) => void res.writeHead(302, { Location: `${address}/login.html` }).end()],
    [
      'GET /login.html',
      (_req, res) => void res.writeHead(200, { 'Content-Type': 'text/html' }).end(LOGIN_PAGE),
    ],
  ])

  /** Sends `count` server-sent events, or events until the client leaves. */
  function streamEvents(req: IncomingMessage, res: ServerResponse, { searchParams }: URL): undefined {
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' })
    const count = req.method === 'HEAD' ? 0 : Number(searchParams.get('count') ?? Number.POSITIVE_INFINITY)
    let sent = 0
    const sendEvent = (): void => {
      sent += 1
      const watts = outlets.reduce((sum, outlet) => sum + outlet.watts, 0)
      const data = { uptime_seconds: uptime(), watts }
      if (sent <= count) res.write(`id: ${sent}\nevent: power\ndata: ${JSON.stringify(data)}\n\n`)
      if (sent >= count) res.end()
    }
    const timer = clock.every(eventInterval, sendEvent)
    res.once('close', () => timer.cancel())
    sendEvent()
  }

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    res.setHeader('Server', 'PowerDist-httpd/1.04')
    const url = URL.parse(`http://device${req.url}`)
    const handler = handlers.get(`${req.method === 'HEAD' ? 'GET' : req.method} ${url?.pathname}`)
    if (handler === undefined || url === null) return sendJson(res, 404, { error: 'not found' })
    const found = await handler(req, res, url)
    if (found !== undefined) sendJson(res, 200, found)
  }

  const server = createServer((req, res) => {
    // Any error except a bug means that the client left. Destroying the response shows that the transfer is incomplete.
    answer(req, res).catch((error: unknown) => {
      res.destroy()
      if (isBug(error)) throw error
    })
  })
  /** The maintenance console: `ports` is a command, other text is echoed. */
  const consoles = new WebSocketServer({ server, path: '/api/console', maxPayload: 64 * 1024 })
  consoles.on('connection', (client) => {
    client.on('message', (data, binary) => {
      if (!binary && data.toString() === 'ports') client.send(JSON.stringify(outlets))
      else client.send(data, { binary })
    })
    // `ws` reports a framing error of the client here. Without a listener it would end the process.
    client.on('error', () => client.terminate())
  })

  return {
    start: ({ host, port } = { host: '127.0.0.1', port: 0 }) =>
      new Promise((resolve, reject) => {
        consoles.once('error', reject)
        server.listen(port, host, () => {
          const bound = server.address()
          const chosen = typeof bound === 'object' && bound ? bound.port : 0
          address = `http://${formatHostPort({ host, port: chosen })}`
          resolve(address)
        })
      }),
    stop: () =>
      new Promise((resolve) => {
        for (const client of consoles.clients) client.terminate()
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

type Outlet = ReturnType<typeof createOutlet>

function createOutlet(id: number) {
  return {
    id,
    label: `outlet ${id}`,
    enabled: true,
    get watts() {
      return this.enabled ? 20 + id * 7 : 0
    },
  }
}

/** Applies a JSON body that has `enabled` and nothing else. */
async function changeOutlet(
  outlet: Outlet,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<Outlet | undefined> {
  const [, given] = /^\s*\{\s*"enabled"\s*:\s*(true|false)\s*\}\s*$/.exec(await text(req)) ?? []
  if (given === undefined) {
    sendJson(res, 400, { error: 'the body must be {"enabled": BOOLEAN}' })
    return undefined
  }
  outlet.enabled = given === 'true'
  return outlet
}

async function receiveFirmware(req: IncomingMessage): Promise<object> {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of req) {
    hash.update(chunk)
    size += Buffer.from(chunk).length
  }
  return { size, sha256: hash.digest('hex'), status: 'stored, reboot to apply' }
}

function sendJson(res: ServerResponse, status: number, value: object): void {
  const body = `${JSON.stringify(value)}\n`
  res.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) })
  res.end(body)
}
