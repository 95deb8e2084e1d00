import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Overview } from '../overview/model.ts'

/** Whether the sidecar is ready for traffic, and the reasons if it is not. */
export type Readiness =
  | { readonly ready: true }
  | { readonly ready: false; readonly reasons: readonly string[] }

export interface AdminDependencies {
  readonly metrics: () => Promise<string>
  readonly metricsType: string
  readonly readiness: () => Readiness
  readonly onBug: (error: unknown) => void
  readonly overview: Overview
}

interface Page {
  readonly status: number
  readonly type: string
  readonly body: string
}

/** Milliseconds. */
const REQUEST_TIMEOUT = 10_000
const JSON_TYPE = 'application/json'

/**
 * The listener for operators: `/metrics` for Prometheus, `/healthz` (the process is alive) and `/readyz` (it is ready for
 * traffic). It has no authentication, so it belongs on loopback or a management network.
 */
export function createAdminListener({ metrics, metricsType, readiness, onBug }: AdminDependencies): Server {
  const pages: Readonly<Record<string, () => Page | Promise<Page>>> = {
    '/metrics': async () => ({ status: 200, type: metricsType, body: await metrics() }),
    '/healthz': () => json(200, { status: 'ok' }),
    '/readyz': () => {
      const state = readiness()
      return json(state.ready ? 200 : 503, state)
    },
  }

  async function pageFor(req: IncomingMessage): Promise<Page> {
    const path = (req.url ?? '').replace(/\?.*$/s, '')
    const page = Object.hasOwn(pages, path) ? pages[path] : undefined
    if (page === undefined) return json(404, { error: 'not_found', pages: Object.keys(pages) })
    if (req.method !== 'GET' && req.method !== 'HEAD') return json(405, { error: 'method_not_allowed' })
    return page()
  }

  const server = createServer(
    { requestTimeout: REQUEST_TIMEOUT, headersTimeout: REQUEST_TIMEOUT, connectionsCheckingInterval: 1_000 },
    (req, res) => {
      pageFor(req)
        .catch((error: unknown) => {
          onBug(error)
          return json(500, { error: 'server_error' })
        })
        .then((page) => send(res, page))
    },
  )
  // Closes the connection of a client that stops reading.
  server.setTimeout(REQUEST_TIMEOUT)
  return server
}

function json(status: number, value: object): Page {
  return { status, type: JSON_TYPE, body: `${JSON.stringify(value)}\n` }
}

function send(res: ServerResponse, { status, type, body }: Page): void {
  res.writeHead(status, {
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    ...(status === 405 ? { Allow: 'GET, HEAD' } : {}),
  })
  res.end(body)
}
