import type { IncomingMessage, RequestListener, Server, ServerOptions, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type AdmitsAddress, isLoopback, normalizeAddress, prefix64 } from '../http/ip.ts'
import { isRead } from '../http/scope.ts'
import { tcpHostOf } from '../system/listen.ts'
import { TurnBudget } from '../system/turn-budget.ts'
import { readByTurns, wireOf } from './admin-wire.ts'
import { type Answer, ClientGone, json, methodNotAllowed, send } from './answer.ts'
import { createHostCheck, type HostCheckDependencies } from './host-check.ts'
import { inTurn } from './in-turn.ts'
import type { Reach } from './page-access.ts'
import type { PageRoutes } from './page-routes.ts'

export type Readiness =
  | { readonly ready: true }
  | { readonly ready: false; readonly reasons: readonly string[] }

/** Creates the server of the listener: in cleartext, or with TLS. */
export type CreateServer = (options: ServerOptions, onRequest: RequestListener) => Server

interface Dependencies {
  readonly createServer: CreateServer
  readonly metrics: () => Promise<string>
  readonly metricsType: string
  readonly readiness: () => Readiness
  readonly hosts: HostCheckDependencies
  readonly admits: AdmitsAddress
  /**
   * Further connections are closed at once: each takes a descriptor. One client (IPv6: a /64) has a quarter of them, so that only four together
   * shut out health checks.
   */
  readonly mostConnections: number
  /** The live page, loaded when the first viewer comes. */
  readonly page: (reach: Reach) => Promise<PageRoutes>
  readonly onBug: (error: unknown) => void
}

/** Milliseconds. */
const REQUEST_TIMEOUT = 10_000
/** The least connections of one client: a viewer uses up to six. */
const LEAST_PER_PEER = 8

/**
 * The listener for operators: `/metrics` for Prometheus, `/healthz` (the process is alive), `/readyz` (it is ready for traffic), all
 * three without a login, and the live page at `/`. Every request has to name the sidecar by a known host name (`createHostCheck`).
 */
export function createAdminListener(deps: Dependencies) {
  const { createServer, metrics, metricsType, readiness, hosts, admits, mostConnections, page, onBug } = deps
  const pages: Readonly<Record<string, () => Answer | Promise<Answer>>> = {
    '/metrics': async () => ({ status: 200, type: metricsType, body: await metrics() }),
    '/healthz': () => json(200, { status: 'ok' }),
    '/readyz': () => {
      const state = readiness()
      return json(state.ready ? 200 : 503, state)
    },
  }
  const checkHost = createHostCheck(hosts)
  let reach: Reach = 'network'
  let loading: Promise<PageRoutes> | undefined

  async function answerTo(req: IncomingMessage, res: ServerResponse): Promise<Answer | undefined> {
    const refused = reach === 'unix' ? undefined : checkHost(req)
    if (refused !== undefined) return refused
    // Compared byte for byte: nothing is decoded or resolved, so no other spelling reaches a page.
    const path = (req.url ?? '').replace(/\?.*$/s, '')
    if (path === '/' || path.startsWith('/page/')) {
      loading ??= page(reach).catch((error: unknown) => {
        loading = undefined
        throw error
      })
      return (await loading).answer(req, res, path)
    }
    const known = Object.hasOwn(pages, path) ? pages[path] : undefined
    if (known === undefined) return json(404, { error: 'not_found', pages: ['/', ...Object.keys(pages)] })
    return isRead(req.method) ? known() : methodNotAllowed('GET, HEAD')
  }

  function serve(req: IncomingMessage, res: ServerResponse): void {
    answerTo(req, res)
      .catch((error: unknown) => {
        if (!(error instanceof ClientGone)) onBug(error)
        return json(500, { error: 'server_error' })
      })
      .then((answer) => {
        if (answer !== undefined) send(res, answer)
      })
  }

  const server = createServer(
    {
      requestTimeout: REQUEST_TIMEOUT,
      headersTimeout: REQUEST_TIMEOUT,
      connectionsCheckingInterval: REQUEST_TIMEOUT,
    },
    (req, res) => {
      inTurn(turnsOf(req.socket), req, res, () => serve(req, res))
    },
  )
  server.once('listening', () => {
    const host = tcpHostOf(server)
    reach = host === undefined ? 'unix' : isLoopback(host) ? 'loopback' : 'network'
  })
  server.maxConnections = mostConnections
  // Closes the connection of a client that stops reading.
  server.setTimeout(REQUEST_TIMEOUT)
  const { closeDenied, closeHandshakes, turnsOf } = watchPeers(
    server,
    admits,
    Math.max(LEAST_PER_PEER, mostConnections / 4),
  )
  return {
    server,
    closeDenied,
    closeAll(): void {
      server.closeAllConnections()
      closeHandshakes()
    },
  }
}

/**
 * Closes connections of addresses that may not connect, those past the cap, and those that the client has reset: without an address, its
 * requests would belong to no peer. The peers of a Unix socket have none, and may connect.
 *
 * `closeDenied` closes the connections of addresses that may no longer connect, `closeHandshakes` all that TCP has opened: `node:http` does not
 * know those that are still in a TLS handshake. `turnsOf` returns the turn budget of a peer, over all its connections; the peers of a Unix socket
 * share one.
 */
function watchPeers(server: Server, admits: AdmitsAddress, mostPerPeer: number) {
  const open = new Map<string, { readonly sockets: Set<Socket>; readonly turns: TurnBudget }>()
  const budgets = new WeakMap<Socket, TurnBudget>()
  const ofUnix = new TurnBudget()
  const read = readByTurns(server)
  server.on('connection', (socket: Socket) => {
    if (typeof server.address() === 'string') {
      read(socket, ofUnix)
      return
    }
    const address = socket.remoteAddress ?? ''
    const peer = prefix64(normalizeAddress(address) ?? '')
    const known = open.get(peer) ?? { sockets: new Set(), turns: new TurnBudget() }
    const { sockets } = known
    if (address === '' || !admits(address) || sockets.size >= mostPerPeer) {
      socket.destroy()
      return
    }
    open.set(peer, known)
    sockets.add(socket)
    budgets.set(socket, known.turns)
    socket.once('close', () => {
      sockets.delete(socket)
      if (sockets.size === 0) open.delete(peer)
    })
    read(socket, known.turns)
  })
  const each = (): Socket[] => [...open.values()].flatMap(({ sockets }) => [...sockets])
  return {
    turnsOf: (socket: Socket): TurnBudget => budgets.get(wireOf(socket)) ?? ofUnix,
    closeDenied(): void {
      for (const socket of each()) if (!admits(socket.remoteAddress ?? '')) socket.destroy()
    },
    closeHandshakes(): void {
      for (const socket of each()) socket.destroy()
    },
  }
}
