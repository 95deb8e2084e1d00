import { type Http2Session, performServerHandshake, type ServerHttp2Session } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import type { Exchange } from '../http/exchange.ts'
import { Http2Exchange } from './http2-exchange.ts'
import type { ListenLimits } from './limits.ts'

export interface Http2Server {
  /** Takes a decrypted connection on which `h2` was agreed. */
  accept(socket: TLSSocket): void
  /** Sends GOAWAY on every session: streams that run may finish, new ones go elsewhere. */
  drain(): void
}

export interface Http2Handlers {
  readonly onExchange: (exchange: Exchange) => void
  /** A handler failed: its stream is reset, the others go on. */
  readonly onBug: (error: unknown) => void
}

/** A session that was told to go gets this long to do so (ms). */
const GOODBYE_TIMEOUT = 5_000

/** The HTTP/2 side of the public listener. */
export function createHttp2Server(limits: ListenLimits, { onExchange, onBug }: Http2Handlers): Http2Server {
  const sessions = new Map<ServerHttp2Session, TLSSocket>()
  const patience = Math.min(GOODBYE_TIMEOUT, limits.idleTimeout)
  let over: readonly TLSSocket[] = []
  let sweeping: NodeJS.Timeout | undefined

  /**
   * A session that is over waits for its last write before it lets go of its connection, and does so for ever when the
   * client left amid that: no event tells, and the connection would count, and be waited for, until the end.
   */
  function sweep(): void {
    for (const socket of over) socket.destroy()
    over = [...sessions].flatMap(([session, socket]) => (session.destroyed ? [socket] : []))
  }

  function keep(session: ServerHttp2Session, socket: TLSSocket): void {
    sessions.set(session, socket)
    sweeping ??= setInterval(sweep, patience).unref()
    socket.once('close', () => {
      sessions.delete(session)
      if (sessions.size > 0) return
      clearInterval(sweeping)
      sweeping = undefined
    })
  }

  function accept(socket: TLSSocket): void {
    const session = performServerHandshake(socket, {
      settings: {
        maxConcurrentStreams: limits.maxStreams,
        maxHeaderListSize: limits.maxHeaderSize,
        enableConnectProtocol: false,
      },
      // Beyond this nghttp2 resets the stream; below it the gate counts, and answers.
      maxHeaderListPairs: 2 * limits.maxHeaderCount,
      // A device that says its type twice is heard over HTTP/1 too.
      strictSingleValueFields: false,
    })
    const facts = { peer: socket.remoteAddress ?? '', localPort: socket.localPort ?? 0 }
    const open = new Set<Http2Exchange>()
    keep(session, socket)
    // Node reports a broken session here and closes it; without a listener it would end the process.
    session.on('error', () => {})
    session.setTimeout(limits.idleTimeout, () => {
      if (open.size === 0) closeSession(session)
      // All that is open is answered, and the client takes none of it; a stream that waits for the device is another matter.
      else if ([...open].every(({ answered }) => answered)) session.destroy()
    })
    session.on('stream', (stream, headers, _flags, rawHeaders) => {
      const exchange = new Http2Exchange(stream, headers, rawHeaders, facts)
      open.add(exchange)
      exchange.onEnd(() => open.delete(exchange))
      try {
        onExchange(exchange)
      } catch (error) {
        onBug(error)
        exchange.cut()
      }
    })
  }

  return {
    accept,
    drain() {
      for (const session of sessions.keys()) session.close()
    },
  }
}

function closeSession(session: Http2Session): void {
  session.close()
  const timer = setTimeout(() => session.destroy(), GOODBYE_TIMEOUT)
  session.once('close', () => clearTimeout(timer))
}
