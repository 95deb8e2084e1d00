import { AsyncLocalStorage } from 'node:async_hooks'
import { createServer as createTcpServer, type Socket, type Server as TcpServer } from 'node:net'
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from 'node:tls'
import type { Exchange, UpgradeExchange } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import type { Clock } from '../system/clock.ts'
import { type ConnectedClient, capConnections } from './connection-caps.ts'
import { createHttp1Server, LAST_REQUEST } from './http1/server.ts'
import { createHttp2Server } from './http2/server.ts'
import type { FailedHandshake, ListenLimits, Overuse, RefusedConnection } from './limits.ts'
import type { TlsMaterial } from './tls-pair.ts'

/** How long a TLS handshake may continue after the sidecar begins to stop (ms). */
const LAST_HANDSHAKE = 2_000

type Protocol = 'http/1.1' | 'h2'

export interface PublicListenerDependencies {
  readonly clock: Clock
  readonly limits: ListenLimits
  /** Undefined for cleartext. */
  readonly tls: TlsMaterial | undefined
  readonly onExchange: (exchange: Exchange) => void
  readonly onUpgrade: (exchange: UpgradeExchange) => void
  readonly refusalMessage: (refusal: Refusal) => string
  readonly onBug: (error: unknown) => void
  /** Determines whose connections count together for the cap per client. */
  readonly clientOf: (peer: string) => ConnectedClient
  readonly events: ListenerEvents
}

interface ListenerEvents {
  /** Called with 1 when a connection opens and with -1 when it closes. */
  readonly connection: (protocol: Protocol, change: 1 | -1) => void
  readonly refused: (reason: RefusedConnection) => void
  readonly overused: (reason: Overuse) => void
  readonly handshakeFailed: (reason: FailedHandshake) => void
}

export interface PublicListener {
  readonly server: TcpServer
  /** New connections use this certificate; open connections keep theirs. */
  applyTls(material: TlsMaterial): void
  /** Accepts no new connections and lets the exchanges in flight finish. Resolves when the last connection has closed. */
  drain(): Promise<void>
  /** Closes all remaining connections at once. */
  destroy(): void
}

/** One port: HTTP/1 and HTTP/2 over TLS, selected by ALPN, or only HTTP/1 in cleartext. */
export function createPublicListener(deps: PublicListenerDependencies): PublicListener {
  const { limits, clientOf, events } = deps
  const server = createTcpServer({ noDelay: true })
  const caps = capConnections(server, { clock: deps.clock, limits, clientOf, onRefused: events.refused })
  const handlers = { ...deps, onOveruse: events.overused, onMisused: caps.remember }
  const http1 = createHttp1Server(limits, handlers, deps.clock)
  const http2 = createHttp2Server(limits, handlers)
  const sockets = new Set<Socket>()
  let overTcp = false
  server.once('listening', () => {
    overTcp = typeof server.address() === 'object'
  })
  const handshakes = new Set<Handshake>()
  /** Finds the `Socket` below a `TLSSocket`. Node has no other public API for this. */
  const handshaking = new AsyncLocalStorage<Handshake>()

  /** `wire`: the TCP socket below `socket`; in cleartext `socket` itself. */
  function acceptHttp1(socket: Socket, wire: Socket): void {
    // A half-closed client may still wait for a response. Before HTTP begins, a client that closes its side has left.
    socket.allowHalfOpen = true
    count('http/1.1', socket)
    http1.accept(socket, wire)
  }

  /**
   * Whether the client has already reset the connection. Its address is then lost, and only peers on a Unix socket have none. So
   * its requests would count in the window of those peers (C17), or be trusted like a proxy.
   */
  function hasLeft(socket: Socket): boolean {
    return overTcp && socket.remoteAddress === undefined
  }

  function acceptTls(socket: TLSSocket): void {
    const handshake = handshaking.getStore()
    const wire = handshake?.wire ?? socket
    if (handshake !== undefined) settle(handshake)
    if (hasLeft(socket)) socket.destroy()
    else if (socket.alpnProtocol === 'h2') {
      count('h2', socket)
      http2.accept(socket)
    } else acceptHttp1(socket, wire)
  }

  function count(protocol: Protocol, socket: Socket): void {
    events.connection(protocol, 1)
    socket.once('close', () => events.connection(protocol, -1))
  }

  function shakeHands(server: TlsServer, socket: Socket): void {
    const handshake = { wire: socket }
    handshakes.add(handshake)
    socket.once('close', () => settle(handshake))
    handshaking.run(handshake, () => server.emit('connection', socket))
  }

  /** Ends a handshake. It releases the socket, because the connection's asynchronous resources keep the handshake in memory. */
  function settle(handshake: Handshake): void {
    handshakes.delete(handshake)
    handshake.wire = undefined
  }

  const secure =
    deps.tls === undefined
      ? undefined
      : createSecureFront(deps.tls, limits, acceptTls, events.handshakeFailed)
  server.on('connection', (socket: Socket) => {
    if (hasLeft(socket)) {
      socket.destroy()
      return
    }
    if (!caps.mayStay(socket)) return
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    if (secure === undefined) acceptHttp1(socket, socket)
    else shakeHands(secure, socket)
  })

  return {
    server,
    applyTls: (material) => secure?.setSecureContext(contextOf(material)),
    drain() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      setTimeout(() => {
        for (const { wire } of handshakes) if (wire?.bytesRead === 0) wire.destroy()
      }, LAST_REQUEST).unref()
      setTimeout(() => {
        for (const { wire } of handshakes) wire?.destroy()
      }, LAST_HANDSHAKE).unref()
      http1.drain()
      http2.drain()
      return closed
    },
    destroy() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** A TLS handshake. `wire`: the TCP socket, until the handshake is over. */
interface Handshake {
  wire: Socket | undefined
}

function createSecureFront(
  material: TlsMaterial,
  limits: ListenLimits,
  accept: (socket: TLSSocket) => void,
  onFailed: ListenerEvents['handshakeFailed'],
): TlsServer {
  const server = createTlsServer(
    {
      ...contextOf(material),
      ALPNProtocols: ['h2', 'http/1.1', 'http/1.0'],
      handshakeTimeout: limits.handshakeTimeout,
      noDelay: true,
    },
    accept,
  )
  // A failed handshake only closes its connection and is counted.
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
    socket.destroy()
    onFailed(FAILED_BY_CODE.get(error.code) ?? 'tls_error')
  })
  return server
}

/** By Node's error code. Any other code means that TLS could not be negotiated, or that the client does not speak TLS. */
const FAILED_BY_CODE: ReadonlyMap<string | undefined, FailedHandshake> = new Map([
  ['ERR_TLS_HANDSHAKE_TIMEOUT', 'handshake_timeout'],
  ['ECONNRESET', 'client_left'],
])

function contextOf({ cert, key }: TlsMaterial): { cert: string; key: string; minVersion: 'TLSv1.2' } {
  return { cert, key, minVersion: 'TLSv1.2' }
}
