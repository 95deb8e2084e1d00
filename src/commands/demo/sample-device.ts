import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { WebSocketServer } from 'ws'
import type { Clock } from '../../system/clock.ts'
import { formatHostPort } from '../../system/listen-address.ts'
import { isBug } from '../../system/setup-error.ts'

export interface SampleDeviceDeps {
  readonly clock: Clock
  /** Time between server-sent events (ms). Default: 1000. */
  readonly eventInterval?: number
}

export interface SampleDeviceAddress {
  /** A name, or an address without brackets. */
  readonly host: string
  readonly port: number
}

export interface SampleDevice {
  /**
   * Listens, by default on a free port of 127.0.0.1, and resolves to the base URL, without a slash at its end. Rejects with Node's
   * error if the address cannot be listened on.
   */
  readonly start: (where?: SampleDeviceAddress) => Promise<string>
  readonly stop: () => Promise<void>
}

/** Answers a request, or returns the object that is the answer. */
type Handler = (req: IncomingMessage, res: ServerResponse, url: URL) => object | undefined | Promise<object>

/** A path, and what answers each method there. */
type Route = readonly [path: string, handlers: Readonly<Record<string, Handler>>]

const IDENTITY = {
  model: 'PowerDist 8',
  serial: 'PD8-0042-1979',
  firmware: '1.04',
  contact: 'rack 3, unit 17',
}

const LOGIN_PAGE =
  '<!DOCTYPE html><title>PowerDist 8</title><h1>PowerDist 8</h1><p>There is no login here.</p>\n'

/** A request that the device refuses. */
class Refusal extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** A small legacy power distribution unit for the demo. Its HTTP API has no access control. */
export function createSampleDevice({ clock, eventInterval = 1000 }: SampleDeviceDeps): SampleDevice {
  const outlets = Array.from({ length: 8 }, (_, i) => createOutlet(i + 1))
  const startedAt = clock.monotonic()
  const uptime = (): number => Math.floor((clock.monotonic() - startedAt) / 1000)
  const watts = (): number => outlets.reduce((sum, outlet) => sum + outlet.state().watts, 0)
  /** The device's own. Its firmware writes it into redirects and ignores the Host field. */
  let address = ''

  const ports = outlets.map(({ state, change }): Route => {
    return [`/api/ports/${state().id}`, { GET: state, PUT: async (req) => change(await text(req)) }]
  })
  const routes = new Map<string, Route[1]>([
    ['/api/system', { GET: () => ({ ...IDENTITY, uptime_seconds: uptime() }) }],
    ['/api/ports', { GET: () => ({ ports: outlets.map(({ state }) => state()) }) }],
    ...ports,
    ['/api/firmware', { POST: receiveFirmware }],
    ['/api/events', { GET: streamEvents }],
    ['/login', { GET: (_req, res) => void res.writeHead(302, { Location: `${address}/login.html` }).end() }],
    [
      '/login.html',
      { GET: (_req, res) => void res.writeHead(200, { 'Content-Type': 'text/html' }).end(LOGIN_PAGE) },
    ],
  ])

  /** Server-sent events: `count` of them, or until the client leaves. */
  function streamEvents(req: IncomingMessage, res: ServerResponse, { searchParams }: URL): undefined {
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' })
    const count = req.method === 'HEAD' ? 0 : Number(searchParams.get('count') ?? Number.POSITIVE_INFINITY)
    let sent = 0
    const sendEvent = (): void => {
      sent += 1
      const data = { uptime_seconds: uptime(), watts: watts() }
      if (sent <= count) res.write(`id: ${sent}\nevent: power\ndata: ${JSON.stringify(data)}\n\n`)
      if (sent >= count) res.end()
    }
    const timer = setInterval(sendEvent, eventInterval)
    res.once('close', () => clearInterval(timer))
    sendEvent()
  }

  function handlerOf({ method = '' }: IncomingMessage, url: URL | null, res: ServerResponse): Handler {
    const handlers = routes.get(url?.pathname ?? '')
    if (handlers === undefined) throw new Refusal(404, 'not found')
    const handler = handlers[method === 'HEAD' ? 'GET' : method]
    if (handler !== undefined) return handler
    res.setHeader('Allow', Object.keys(handlers).join(', '))
    throw new Refusal(405, 'method not allowed')
  }

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    res.setHeader('Server', 'PowerDist-httpd/1.04')
    const url = URL.parse(`http://device${req.url}`)
    try {
      const found = await handlerOf(req, url, res)(req, res, url ?? new URL('http://device'))
      if (found !== undefined) sendJson(res, 200, found)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      sendJson(res, error.status, { error: error.message })
    }
  }

  const server = createServer((req, res) => {
    // Any error except a bug means that the client left. Destroying the response shows that the transfer is incomplete.
    answer(req, res).catch((error: unknown) => {
      res.destroy()
      if (isBug(error)) throw error
    })
  })
  /** The maintenance console: `help` and `ports` are commands, other text is echoed. */
  const consoles = new WebSocketServer({ server, path: '/api/console', maxPayload: 64 * 1024 })
  consoles.on('connection', (client) => {
    client.on('message', (data, binary) => {
      const line = binary ? '' : data.toString()
      if (line === 'help') client.send('commands: help, ports; anything else is echoed')
      else if (line === 'ports') client.send(JSON.stringify(outlets.map(({ state }) => state())))
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

interface Outlet {
  readonly state: () => { readonly id: number; readonly label: string; enabled: boolean; watts: number }
  /** Applies the JSON body of `PUT /api/ports/1`. Throws a `Refusal` if it is anything but `enabled`. */
  readonly change: (body: string) => object
}

function createOutlet(id: number): Outlet {
  let enabled = true
  const state: Outlet['state'] = () => {
    return { id, label: `outlet ${id}`, enabled, watts: enabled ? 20 + id * 7 : 0 }
  }
  return {
    state,
    change(body) {
      const [, given] =
        /^\s{0,9}\{\s{0,9}"enabled"\s{0,9}:\s{0,9}(true|false)\s{0,9}\}\s{0,9}$/.exec(body) ?? []
      if (given === undefined) throw new Refusal(400, 'the body must be {"enabled": BOOLEAN}')
      enabled = given === 'true'
      return state()
    },
  }
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
