import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Holding } from '../../memory/account.ts'
import type { Clock, Timer } from '../../system/clock.ts'
import type { ListenLimits, ListenMemory } from '../connection-caps.ts'
import { type Http2Handlers, type Http2Session, serveSession } from './http2-session.ts'

/** The longest interval (ms) between two checks of the deadlines. One timer serves all sessions. */
const LONGEST_INTERVAL = 500

/** The HTTP/2 side of the public listener. */
export function createHttp2Server(
  limits: ListenLimits,
  handlers: Http2Handlers,
  clock: Clock,
  memory: ListenMemory,
) {
  const sessions = new Set<Http2Session>()
  const interval = Math.min(LONGEST_INTERVAL, limits.headerTimeout, limits.idleTimeout)
  let now = 0
  let timer: Timer | undefined
  let draining = false

  function checkDeadlines(): void {
    now += interval
    for (const session of sessions) session.checkDeadlines(now)
  }

  return {
    /** Serves a decrypted connection on which `h2` was negotiated. `wire`: the TCP socket below it. `holding`: its memory. */
    accept(socket: TLSSocket, wire: Socket, holding: Holding): void {
      const session = serveSession(socket, wire, limits, handlers, clock, now, memory, holding)
      sessions.add(session)
      timer ??= clock.every(interval, checkDeadlines)
      socket.once('close', () => {
        sessions.delete(session)
        if (sessions.size > 0) return
        timer?.cancel()
        timer = undefined
      })
      // The TLS handshake was in progress when the stop began.
      if (draining) session.drain()
    },
    /** Sends GOAWAY on every session: open streams may finish, and clients open new ones on other connections. */
    drain(): void {
      draining = true
      for (const session of sessions) session.drain()
    },
  }
}
