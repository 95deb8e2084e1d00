import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Exchange, UpgradeExchange } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import { Http1Exchange } from './http1-exchange.ts'
import type { RequestFacts } from './http1-head.ts'
import { Http1UpgradeExchange } from './http1-upgrade.ts'
import type { ListenLimits } from './limits.ts'
import { endLingering } from './linger.ts'

export interface Http1Handlers {
  readonly onExchange: (exchange: Exchange) => void
  readonly onUpgrade: (exchange: UpgradeExchange) => void
  /** The complete bytes that answer what never became a request (C20). */
  readonly answerGarbage: (refusal: Refusal) => string
  /** A handler failed: its connection is closed, the others go on. */
  readonly onBug: (error: unknown) => void
}

export interface Http1Server {
  /** The server that parses: it listens itself in cleartext, or is handed the decrypted connections. */
  readonly server: Server
  /**
   * From now on every response closes its connection, tunnels are closed, and so, a moment later, are idle connections:
   * a request that a client is just sending on one is still answered.
   */
  drain(): void
}

/** How long a connection that seems idle may still bring a request when the sidecar stops (ms). */
export const LAST_REQUEST: number = 500

/** What is under way on one connection, in the order in which it came. */
interface Connection {
  readonly facts: RequestFacts
  readonly open: Set<Http1Exchange>
  /** An exchange has closed the connection behind it: whatever else is parsed from it is not a request any more. */
  closing: boolean
  garbage: boolean
}

/** The HTTP/1 side of the public listener, for cleartext and TLS connections alike. */
export function createHttp1Server(limits: ListenLimits, handlers: Http1Handlers): Http1Server {
  const connections = new Map<Socket, Connection>()
  const upgrades = new Set<Http1UpgradeExchange>()
  let draining = false

  const server = createServer({
    headersTimeout: limits.headerTimeout,
    // A long upload is not an attack: the bodies have deadlines of their own, by progress instead of in all.
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(1_000, limits.headerTimeout),
    keepAliveTimeout: limits.idleTimeout,
    maxHeaderSize: limits.maxHeaderSize,
    // A request without a Host is refused by the gate, which counts it; Node would answer it past the limit.
    requireHostHeader: false,
    insecureHTTPParser: false,
    noDelay: true,
  })
  server.maxHeadersCount = 0
  // A client may close its sending side and wait for the answer. The types of Node do not know this old property.
  Object.assign(server, { httpAllowHalfOpen: true })
  // A connection that says nothing at all never reaches the header deadline's parser.
  server.timeout = limits.idleTimeout

  function connectionOf(socket: Socket): Connection {
    const known = connections.get(socket)
    if (known !== undefined) return known
    const connection: Connection = {
      facts: factsOf(socket),
      open: new Set(),
      closing: false,
      garbage: false,
    }
    connections.set(socket, connection)
    socket.once('close', () => {
      connections.delete(socket)
      for (const exchange of connection.open) exchange.clientGone()
    })
    socket.once('end', () => {
      for (const exchange of connection.open) exchange.halfClosed()
    })
    return connection
  }

  function track(socket: Socket, connection: Connection, exchange: Http1Exchange): void {
    connection.open.add(exchange)
    exchange.onEnd(() => {
      connection.open.delete(exchange)
      if (exchange.closing) connection.closing = true
      if (connection.open.size === 0 && (socket.readableEnded || draining)) socket.end()
      if (connection.garbage && connection.open.size === 0) refuseGarbage(socket, MALFORMED)
    })
  }

  function onRequest(expects: boolean, req: IncomingMessage, res: ServerResponse): void {
    const { socket } = req
    // What is pipelined behind a request that closes the connection never runs.
    const connection = connectionOf(socket)
    if (isClosing(connection)) return
    const { facts } = connection
    const exchange = new Http1Exchange(req, res, expects ? { ...facts, expects } : facts)
    if (draining) exchange.closeAfter()
    track(socket, connection, exchange)
    handlers.onExchange(exchange)
  }

  function onUpgrade(req: IncomingMessage, stream: Duplex, early: Buffer): void {
    const { socket } = req
    socket.on('error', () => socket.destroy())
    // Of an upgrade with a body this is a stream of Node's own around the socket, and it repeats the socket's errors.
    stream.on('error', () => {})
    const connection = connectionOf(socket)
    if (isClosing(connection)) return
    if (connection.open.size > 0) {
      // Pipelined behind a request that is not answered yet, where there is no place for a tunnel: that one still gets
      // its answer, and then this is refused.
      connection.closing = true
      connection.garbage = true
      return
    }
    const exchange = new Http1UpgradeExchange(req, new ServerResponse(req), connection.facts, early)
    track(socket, connection, exchange)
    upgrades.add(exchange)
    exchange.onEnd(() => upgrades.delete(exchange))
    handlers.onUpgrade(exchange)
  }

  function refuseGarbage(socket: Socket, refusal: Refusal): void {
    if (!socket.writable) socket.destroy()
    else endLingering(socket, handlers.answerGarbage(refusal))
  }

  function onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
    const open = [...(connections.get(socket)?.open ?? [])]
    const unfinished = open.find((exchange) => exchange.unread)
    if (error.code === 'ECONNRESET' || socket.destroyed) socket.destroy()
    else if (unfinished !== undefined) breakUnfinished(unfinished, socket)
    else if (open.length > 0) connectionOf(socket).garbage = true
    else if (socket.bytesRead === 0) socket.destroy()
    else refuseGarbage(socket, refusalFor(error))
  }

  /** An error that escaped here would end the process, and every other connection with it. */
  function guarded(socket: Socket, handle: () => void): void {
    try {
      handle()
    } catch (error) {
      handlers.onBug(error)
      socket.destroy()
    }
  }

  server.on('request', (req, res) => guarded(req.socket, () => onRequest(false, req, res)))
  server.on('checkContinue', (req, res) => guarded(req.socket, () => onRequest(true, req, res)))
  server.on('checkExpectation', (req, res) => guarded(req.socket, () => onRequest(true, req, res)))
  server.on('upgrade', (req, stream, early) => guarded(req.socket, () => onUpgrade(req, stream, early)))
  server.on('connect', (req, stream, early) => guarded(req.socket, () => onUpgrade(req, stream, early)))
  server.on('clientError', (error: NodeJS.ErrnoException, stream) => {
    // The server is only ever handed sockets, so the stream that the types speak of is one.
    onClientError(error, stream as Socket)
  })
  server.on('timeout', (socket: Socket) => {
    // Silence while the device thinks is not idleness: the device's own deadlines end that.
    if ((connections.get(socket)?.open.size ?? 0) === 0) socket.destroy()
  })

  return {
    server,
    drain() {
      draining = true
      for (const upgrade of upgrades) upgrade.farewell()
      for (const { open } of connections.values()) {
        for (const exchange of open) if (!exchange.answered) exchange.closeAfter()
      }
      setTimeout(() => server.closeIdleConnections(), LAST_REQUEST).unref()
    },
  }
}

const MALFORMED: Refusal = { kind: 'malformed', description: 'The bytes received are not an HTTP request.' }

/** The body of a request turned out malformed: its exchange answers if it still can, else the connection breaks. */
function breakUnfinished(exchange: Http1Exchange, socket: Socket): void {
  if (exchange.answered) socket.destroy()
  else exchange.breakBody()
}

function isClosing(connection: Connection): boolean {
  if (connection.closing) return true
  if (connection.open.size === 0) return false
  for (const exchange of connection.open) if (exchange.closing) return true
  return false
}

function refusalFor(error: NodeJS.ErrnoException): Refusal {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return { kind: 'header-too-large' }
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { kind: 'request-timeout' }
    default:
      return MALFORMED
  }
}

/** What is alike for all ordinary requests of a connection. */
function factsOf(socket: Socket): RequestFacts {
  return {
    secure: (socket as Partial<TLSSocket>).encrypted === true,
    localPort: socket.localPort ?? 0,
    upgrade: false,
    expects: false,
  }
}
