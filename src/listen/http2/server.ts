import type { TLSSocket } from 'node:tls'
import type { ListenLimits } from '../limits.ts'
import { type Http2Handlers, type Http2Session, serveSession } from './session.ts'

export interface Http2Server {
  /** Takes a decrypted connection on which `h2` was agreed. */
  accept(socket: TLSSocket): void
  /** Sends GOAWAY on every session: streams that run may finish, new ones go elsewhere. */
  drain(): void
}

/** The longest time between two looks at the deadlines of all sessions (ms). */
const LONGEST_ROUND = 500

/** The HTTP/2 side of the public listener. */
export function createHttp2Server(limits: ListenLimits, handlers: Http2Handlers): Http2Server {
  const sessions = new Set<Http2Session>()
  const round = Math.min(LONGEST_ROUND, limits.headerTimeout, limits.idleTimeout)
  let now = 0
  let rounds: NodeJS.Timeout | undefined
  let draining = false

  function look(): void {
    now += round
    for (const session of sessions) session.look(now)
  }

  return {
    accept(socket) {
      const session = serveSession(socket, limits, handlers, now)
      sessions.add(session)
      rounds ??= setInterval(look, round).unref()
      socket.once('close', () => {
        sessions.delete(session)
        if (sessions.size > 0) return
        clearInterval(rounds)
        rounds = undefined
      })
      // Its handshake was under way when the stop was asked for.
      if (draining) session.drain()
    },
    drain() {
      draining = true
      for (const session of sessions) session.drain()
    },
  }
}
