import { createServer, type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Exchange, UpgradeExchange } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import { Http1Exchange } from './http1-exchange.ts'
import { breakUnfinished, MALFORMED, refusalFor } from './http1-faults.ts'
import { bodyFraming, type RequestFacts } from './http1-head.ts'
import { createIntake, type Intake } from './http1-intake.ts'
import { Http1UpgradeExchange } from './http1-upgrade.ts'
import { keepIdleTimer, setIdleTimeout } from './idle-timer.ts'
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
  /** Takes a connection, in cleartext or decrypted. */
  accept(socket: Socket): void
  /**
   * From now on every response closes its connection, tunnels are closed, and so, a moment later, are idle connections:
   * a request that a client is just sending on one is still answered.
   */
  drain(): void
}

/** How long a connection that seems idle may still bring a request when the sidecar stops (ms). */
export const LAST_REQUEST: number = 500

/** One connection, which serves one request after the other. */
interface Connection {
  readonly facts: RequestFacts
  readonly intake: Intake
  /** What is being served. */
  current: Http1Exchange | undefined
  /** The request whose head was parsed last, if its framing has not been asked for yet. */
  begun: IncomingMessage | undefined
  /** Whatever else is sent here is not a request any more. */
  closing: boolean
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
    maxHeaderSize: limits.maxHeaderSize,
    // A request without a Host is refused by the gate, which counts it; Node would answer it past the limit.
    requireHostHeader: false,
    insecureHTTPParser: false,
    noDelay: true,
  })
  server.maxHeadersCount = 0
  // A client may close its sending side and wait for the answer. The types of Node do not know this old property.
  Object.assign(server, { httpAllowHalfOpen: true })
  setIdleTimeout(server, limits.idleTimeout)

  function accept(socket: Socket): void {
    server.emit('connection', socket)
    keepIdleTimer(socket)
    const intake = createIntake(socket, {
      busy: () => connection.current !== undefined || connection.closing,
      begun() {
        const req = connection.begun
        connection.begun = undefined
        return req === undefined ? undefined : bodyFraming(req.rawHeaders)
      },
      onFault: () => refuseBytes(socket, connection, MALFORMED),
      onBug: handlers.onBug,
    })
    const connection: Connection = {
      facts: factsOf(socket),
      intake,
      current: undefined,
      begun: undefined,
      closing: false,
    }
    connections.set(socket, connection)
    socket.once('close', () => {
      connections.delete(socket)
      connection.current?.clientGone()
    })
    socket.once('end', () => connection.current?.halfClosed())
    // Its handshake was under way when the stop was asked for.
    if (draining) closeIdleSoon()
  }

  function serve(socket: Socket, connection: Connection, exchange: Http1Exchange): void {
    connection.current = exchange
    exchange.onEnd(() => {
      connection.current = undefined
      if (exchange.closing) connection.closing = true
      if (draining || connection.intake.exhausted) socket.end()
      else connection.intake.proceed()
    })
    // Of a request that had to wait its turn only the head has been parsed by now.
    if (connection.intake.ended) setImmediate(() => exchange.halfClosed())
  }

  function onRequest(expects: boolean, req: IncomingMessage, res: ServerResponse): void {
    const { socket } = req
    const connection = connections.get(socket)
    if (connection === undefined) return
    connection.begun = req
    const { facts } = connection
    const exchange = new Http1Exchange(req, res, expects ? { ...facts, expects } : facts)
    if (draining) exchange.closeAfter()
    serve(socket, connection, exchange)
    handlers.onExchange(exchange)
  }

  function onUpgrade(req: IncomingMessage, stream: Duplex): void {
    const { socket } = req
    socket.on('error', () => socket.destroy())
    // Of an upgrade with a body this is a stream of Node's own around the socket, and it repeats the socket's errors.
    stream.on('error', () => {})
    const connection = connections.get(socket)
    if (connection === undefined) return
    const early = connection.intake.release()
    const exchange = new Http1UpgradeExchange(req, new ServerResponse(req), connection.facts, early)
    serve(socket, connection, exchange)
    upgrades.add(exchange)
    exchange.onEnd(() => upgrades.delete(exchange))
    handlers.onUpgrade(exchange)
  }

  /** What was received is no request, or not the body of the one that is being served. */
  function refuseBytes(socket: Socket, connection: Connection, refusal: Refusal): void {
    const { current } = connection
    connection.closing = true
    if (current !== undefined) breakUnfinished(current, socket)
    else if (!socket.writable) socket.destroy()
    else endLingering(socket, handlers.answerGarbage(refusal))
  }

  function onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
    const connection = connections.get(socket)
    connection?.intake.release()
    const silent = socket.bytesRead === 0 || error.code === 'ECONNRESET' || socket.destroyed
    if (silent || connection === undefined) socket.destroy()
    else refuseBytes(socket, connection, refusalFor(error))
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
  server.on('upgrade', (req, stream) => guarded(req.socket, () => onUpgrade(req, stream)))
  server.on('connect', (req, stream) => guarded(req.socket, () => onUpgrade(req, stream)))
  server.on('clientError', (error: NodeJS.ErrnoException, stream) => {
    // The server is only ever handed sockets, so the stream that the types speak of is one.
    onClientError(error, stream as Socket)
  })
  server.on('timeout', (socket: Socket) => {
    // Silence while the device thinks is not idleness: the device's own deadlines end that. Bytes that wait all the
    // while for the client to take them are its own affair.
    if (connections.get(socket)?.current === undefined || socket.writableLength > 0) socket.destroy()
  })

  function closeIdleSoon(): void {
    setTimeout(() => server.closeIdleConnections(), LAST_REQUEST).unref()
  }

  // The server is handed its connections, so it never listens itself; this starts its deadline checks.
  server.emit('listening')

  return {
    accept,
    drain() {
      draining = true
      for (const upgrade of upgrades) upgrade.farewell()
      for (const { current } of connections.values()) {
        if (current !== undefined && !current.answered) current.closeAfter()
      }
      closeIdleSoon()
    },
  }
}

function factsOf(socket: Socket): RequestFacts {
  return {
    secure: (socket as Partial<TLSSocket>).encrypted === true,
    localPort: socket.localPort ?? 0,
    upgrade: false,
    expects: false,
  }
}
