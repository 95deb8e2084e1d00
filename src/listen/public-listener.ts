import { createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Refusal } from '../http/refusal.ts'
import type { Holder, Holding } from '../memory/account.ts'
import { CONNECTION, HANDSHAKE, TLS_CONNECTION } from '../memory/costs.ts'
import type { Clock } from '../system/clock.ts'
import { tcpHostOf } from '../system/listen.ts'
import { Sluice } from '../system/sluice.ts'
import {
  accountOf,
  type ConnectedClient,
  capConnections,
  type FailedHandshake,
  type ListenLimits,
  type ListenMemory,
  type Overuse,
  type RefusedConnection,
} from './connection-caps.ts'
import { createConnectionPlaces } from './connection-places.ts'
import { createHandshakes } from './handshakes.ts'
import type { Http1Handlers } from './http1/http1-connection.ts'
import { createHttp1Server } from './http1/http1-server.ts'
import { createHttp2Server } from './http2/http2-server.ts'
import { createLingering } from './linger.ts'
import type { TlsMaterial } from './tls-pair.ts'

type Protocol = 'http/1.1' | 'h2'

/** The description contains no URL, because the host in it would be a claim of the client. */
const PLAIN_HTTP: Refusal = {
  kind: 'malformed',
  description: 'This port speaks HTTPS: use https:// in place of http://.',
}

interface PublicListenerDependencies extends Http1Handlers {
  readonly clock: Clock
  readonly limits: ListenLimits
  /** Undefined for cleartext. */
  readonly tls: TlsMaterial | undefined
  /** Called with the address of this machine to which a client has connected, only with TLS. */
  readonly onReached: (address: string) => void
  /** The memory of the clients. Its `clientOf` also tells which connections count together for the cap per client. */
  readonly memory: ListenMemory
  readonly events: ListenerEvents
}

interface ListenerEvents {
  /** Called with 1 when a connection opens and with -1 when it closes. */
  readonly connection: (protocol: Protocol, change: 1 | -1) => void
  /** `peer`: the address that may not connect. */
  readonly refused: (reason: RefusedConnection, peer?: string) => void
  readonly overused: (reason: Overuse) => void
  readonly handshakeFailed: (reason: FailedHandshake) => void
}

/**
 * The listener for clients on one port: HTTP/1 and HTTP/2 over TLS, selected by ALPN, or only HTTP/1 in cleartext. A second port, in
 * cleartext beside TLS, leads to the first. Both have the same caps, places, deadlines and account.
 */
export function createPublicListener(deps: PublicListenerDependencies) {
  const { memory, events } = deps
  /** `applyLimits` replaces its values. */
  const limits = { ...deps.limits }
  const { account } = memory
  const costOfNew = deps.tls === undefined ? CONNECTION : HANDSHAKE
  const clientOf = (peer: string): ConnectedClient => memory.clientOf(peer, [])
  const caps = capConnections({ clock: deps.clock, limits, clientOf, onRefused: events.refused })
  const places = createConnectionPlaces({
    limits,
    clock: deps.clock,
    onTaken: () => events.refused('max_connections'),
  })
  const handlers = { ...deps, onOveruse: events.overused, onMisused: caps.remember }
  const lingering = createLingering(deps.clock)
  const serversOf = (given: ListenLimits) => ({
    http1: createHttp1Server(given, handlers, deps.clock, lingering, memory),
    http2: createHttp2Server(given, handlers, deps.clock, memory),
    redirect: createHttp1Server(given, handlers, deps.clock, lingering, memory, true),
  })
  /** These servers accept new connections. A connection keeps the deadlines of the servers that accepted it. */
  let servers = serversOf(deps.limits)
  const allServers = [servers]
  /** The memory of each open connection, by its TCP socket. */
  const holdings = new Map<Socket, Holding>()
  const isOverTcp = new Set<Server>()

  /** `wire`: the TCP socket below `socket`; in cleartext `socket` itself. */
  function acceptHttp1(socket: Socket, wire: Socket, http1 = servers.http1): void {
    // A half-closed client may still wait for a response. Before HTTP begins, a FIN means that the client has left.
    socket.allowHalfOpen = true
    wire.allowHalfOpen = true
    count('http/1.1', socket)
    http1.accept(socket, wire, holdingOf(wire))
  }

  /** The memory of a connection. If its socket closed during the handshake, the holding is gone, and a new one is opened. */
  function holdingOf(wire: Socket): Holding {
    return holdings.get(wire) ?? charge(wire, costOfNew)
  }

  /** The stream from which TLS reads a connection: a `Sluice`, or the socket itself for a trusted proxy or a client with a grant. */
  function readable(wire: Socket): Duplex {
    const holding = holdingOf(wire)
    const { client } = holding
    if (client.isProxy || client.grant !== undefined) return wire
    return new Sluice(wire, client.turnsOfConnection(), {
      onHeld: (change) => holding.hold(change),
      isKnown: () => client.grant !== undefined,
    })
  }

  /** Why a new connection is refused before it costs a handshake; undefined if its client has memory and a place for it. */
  function whyNot(socket: Socket, cost: number): 'max_connections' | 'memory' | undefined {
    const client = accountOf(memory, socket.remoteAddress ?? '')
    if (!account.mayHold(client, cost, 'connection')) return 'memory'
    return places.mayTake(client) ? undefined : 'max_connections'
  }

  /** Charges a new connection to its client. */
  function charge(socket: Socket, cost: number): Holding {
    const client = accountOf(memory, socket.remoteAddress ?? '')
    const holding = account.open(client, new Handshaking(socket))
    holding.set('connections', cost)
    holdings.set(socket, holding)
    places.take(holding)
    socket.once('close', () => {
      holdings.delete(socket)
      places.release(holding)
      holding.close()
    })
    return holding
  }

  /**
   * Whether the client has already reset a TCP connection. Such a connection has lost its peer address and looks like one on a Unix socket:
   * its requests would count in the window of the Unix socket (C17), or be trusted like those of a proxy.
   */
  function hasLeft(socket: Socket, at: Server): boolean {
    return isOverTcp.has(at) && socket.remoteAddress === undefined
  }

  function acceptTls(socket: TLSSocket, wire: Socket): void {
    if (hasLeft(wire, server)) {
      socket.destroy()
      return
    }
    const holding = holdingOf(wire)
    holding.set('connections', TLS_CONNECTION)
    if (socket.alpnProtocol === 'h2') {
      count('h2', socket)
      servers.http2.accept(socket, wire, holding)
    } else acceptHttp1(socket, wire)
  }

  function count(protocol: Protocol, socket: Socket): void {
    events.connection(protocol, 1)
    socket.once('close', () => events.connection(protocol, -1))
  }

  const handshakes =
    deps.tls === undefined
      ? undefined
      : createHandshakes({
          clock: deps.clock,
          limits,
          material: deps.tls,
          lingering,
          turnsOf: (wire) => holdingOf(wire).client.turnsOfConnection(),
          readable,
          accept: acceptTls,
          onFailed: events.handshakeFailed,
          plainHttpMessage: () => deps.refusalMessage(PLAIN_HTTP),
        })

  /** Opens a port. `cost`: the memory of a connection (bytes). `begin`: called with each connection that may stay. */
  function open(cost: number, begin: (socket: Socket) => void): Server {
    const at = createServer({ noDelay: true })
    at.once('listening', () => {
      if (tcpHostOf(at) !== undefined) isOverTcp.add(at)
    })
    at.on('connection', (socket: Socket) => {
      if (hasLeft(socket, at)) {
        socket.destroy()
        return
      }
      if (!caps.mayStay(socket)) return
      const refusal = whyNot(socket, cost)
      if (refusal !== undefined) {
        socket.destroy()
        events.refused(refusal)
        return
      }
      if (deps.tls !== undefined && socket.localAddress !== undefined) deps.onReached(socket.localAddress)
      charge(socket, cost)
      begin(socket)
    })
    return at
  }

  const server = open(
    costOfNew,
    handshakes === undefined ? (socket) => acceptHttp1(socket, socket) : handshakes.begin,
  )
  const redirect = open(CONNECTION, (socket) => acceptHttp1(socket, socket, servers.redirect))

  return {
    server,
    /** The port that leads to that of `server`. */
    redirect,
    /** New connections use this certificate; open connections keep theirs. */
    applyTls: (material: TlsMaterial): void => handshakes?.applyTls(material),
    /** Applies the caps and deadlines to new connections. Open connections keep their deadlines. */
    applyLimits(next: ListenLimits): void {
      const { headerTimeout, idleTimeout } = limits
      Object.assign(limits, next)
      if (next.headerTimeout === headerTimeout && next.idleTimeout === idleTimeout) return
      servers = serversOf(next)
      allServers.push(servers)
    },
    /** Accepts no new connections and lets the exchanges in flight finish. Resolves when the last connection has closed. */
    drain(): Promise<void> {
      const closed = [server, redirect].map(
        (each) => new Promise<void>((resolve) => each.close(() => resolve())),
      )
      handshakes?.drain()
      lingering.drain()
      for (const { http1, http2, redirect: leading } of allServers)
        for (const each of [http1, http2, leading]) each.drain()
      return Promise.all(closed).then(() => {})
    },
    /** Closes all remaining connections at once. */
    cut(): void {
      for (const socket of holdings.keys()) socket.destroy()
      handshakes?.close()
    },
  }
}

/** A connection before HTTP begins on it. */
class Handshaking implements Holder {
  readonly working = false
  readonly atDevice = false
  readonly #socket: Socket

  constructor(socket: Socket) {
    this.#socket = socket
  }

  cutUnread(): number {
    return 0
  }

  cut(): void {
    this.#socket.destroy()
  }
}
