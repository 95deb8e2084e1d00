import type { IncomingMessage, RequestListener, Server, ServerOptions, ServerResponse } from 'node:http'
import { createServer as createTcpServer, type Socket, type Server as TcpServer } from 'node:net'
import { type AdmitsAddress, isLoopback, normalizeAddress, prefix64 } from '../http/ip.ts'
import { isRead } from '../http/scope.ts'
import type { Clock } from '../system/clock.ts'
import { tcpHostOf } from '../system/listen.ts'
import { TurnBudget } from '../system/turn-budget.ts'
import { type AdminResponse, ClientGone, json, methodNotAllowed, send } from './admin-response.ts'
import { type ReadByTurns, readByTurns, wireOf } from './admin-wire.ts'
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
  readonly clock: Pick<Clock, 'monotonic' | 'after'>
  readonly createServer: CreateServer
  readonly metrics: () => Promise<string>
  readonly metricsType: string
  readonly readiness: () => Readiness
  readonly hosts: HostCheckDependencies
  readonly admits: AdmitsAddress
  /**
   * The most connections: each takes a descriptor, so further ones are closed at once. One client (IPv6: a /64) has at most a quarter, so
   * only four clients together can shut out health checks.
   */
  readonly mostConnections: number
  /** Loads the live page, when the first viewer comes. */
  readonly page: (reach: Reach) => Promise<PageRoutes>
  readonly onBug: (error: unknown) => void
}

/** The quarter of one client is at least this: a viewer uses up to six connections. */
const LEAST_PER_PEER = 8

/** The time that clients are told for an idle connection (s). It is kept longer, so that no request meets the close. */
const KEPT = 'timeout=5'

/**
 * The listener for operators: `/metrics` for Prometheus, `/healthz` (the process is alive), `/readyz` (it is ready for traffic), all
 * three without a login, and the live page at `/`. A request over TCP has to name the sidecar by a known host name (`createHostCheck`).
 */
export function createAdminListener(deps: Dependencies) {
  const {
    clock,
    createServer,
    metrics,
    metricsType,
    readiness,
    hosts,
    admits,
    mostConnections,
    page,
    onBug,
  } = deps
  const pages: Readonly<Record<string, () => AdminResponse | Promise<AdminResponse>>> = {
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

  async function answerTo(req: IncomingMessage, res: ServerResponse): Promise<AdminResponse | undefined> {
    const refused = reach === 'unix' ? undefined : checkHost(req)
    if (refused !== undefined) return refused
    // Compared byte for byte, neither decoded nor resolved: no other spelling of a path reaches a page.
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
      .then((response) => {
        if (response === undefined) return
        if (res.shouldKeepAlive) res.setHeader('Keep-Alive', KEPT)
        send(res, response)
      })
  }

  // Node's timer is off: the deadline in `admin-wire.ts` closes an idle connection.
  const requests = createServer({ keepAliveTimeout: 0 }, (req, res) => {
    inTurn(turnsOf(req.socket), req, res, () => serve(req, res))
  })
  const server = createTcpServer({ allowHalfOpen: true, noDelay: true })
  server.once('listening', () => {
    const host = tcpHostOf(server)
    reach = host === undefined ? 'unix' : isLoopback(host) ? 'loopback' : 'network'
  })
  server.maxConnections = mostConnections
  const { closeDenied, closeAll, turnsOf } = watchPeers(
    server,
    readByTurns(requests, clock),
    admits,
    Math.max(LEAST_PER_PEER, mostConnections / 4),
  )
  return { server, closeDenied, closeAll }
}

/**
 * Passes accepted connections to `read`. Closes connections from addresses that may not connect, connections above the cap, and connections
 * that the client has already reset: these have no address, so their requests would belong to no peer. (The peers of a Unix socket have no
 * address either, and may connect.)
 *
 * `closeDenied` closes the connections of addresses that may no longer connect. `turnsOf` returns the turn budget of a peer, over all its
 * connections; the peers of a Unix socket share one.
 */
function watchPeers(server: TcpServer, read: ReadByTurns, admits: AdmitsAddress, mostPerPeer: number) {
  const open = new Map<string, { readonly sockets: Set<Socket>; readonly turns: TurnBudget }>()
  const budgets = new WeakMap<Socket, TurnBudget>()
  const all = new Set<Socket>()
  const ofUnix = new TurnBudget()
  server.on('connection', (socket: Socket) => {
    const isUnix = typeof server.address() === 'string'
    const address = socket.remoteAddress ?? ''
    const peer = isUnix ? '' : prefix64(normalizeAddress(address) ?? '')
    const known = open.get(peer) ?? { sockets: new Set(), turns: isUnix ? ofUnix : new TurnBudget() }
    const { sockets, turns } = known
    if (!isUnix && (address === '' || !admits(address) || sockets.size >= mostPerPeer)) {
      socket.destroy()
      return
    }
    open.set(peer, known)
    sockets.add(socket)
    all.add(socket)
    budgets.set(socket, turns)
    socket.once('close', () => {
      all.delete(socket)
      sockets.delete(socket)
      if (sockets.size === 0) open.delete(peer)
    })
    read(socket, turns)
  })
  return {
    turnsOf: (socket: Socket): TurnBudget => budgets.get(wireOf(socket)) ?? ofUnix,
    closeDenied(): void {
      if (typeof server.address() === 'string') return
      for (const socket of [...all]) if (!admits(socket.remoteAddress ?? '')) socket.destroy()
    },
    closeAll(): void {
      for (const socket of [...all]) socket.destroy()
    },
  }
}
