import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { ListenLimits } from '../connection-caps.ts'
import { endBroken } from '../linger.ts'
import { watchHeaders } from './header-watch.ts'
import type { OpenExchanges } from './open-exchanges.ts'

interface DeadlinesOptions {
  readonly socket: TLSSocket
  /** The TCP socket below it. */
  readonly wire: Socket
  readonly limits: ListenLimits
  readonly open: OpenExchanges
  /** The time (ms) on the clock of `check`. */
  readonly now: number
}

/** How long (ms) a session without work lingers: once for bytes in flight, then as long again for the client to close its side. */
const LINGER_TIME = 500
/** How long (ms) it lingers while sent bytes are unread. */
const UNREAD_LINGER_TIME = 3_000

/** Ends a session that its client does not end: idle, with an overdue head, with unread responses, or without the client's SETTINGS. */
export class SessionDeadlines {
  readonly #session: ServerHttp2Session
  readonly #socket: TLSSocket
  readonly #wire: Socket
  readonly #limits: ListenLimits
  readonly #open: OpenExchanges
  /** The time of the first check: the session was opened at most one interval before. */
  #opened: number | undefined
  readonly headers: ReturnType<typeof watchHeaders>
  /** The client's SETTINGS frame has arrived. */
  greeted = false
  /** Something arrived or ended since the last check. */
  active = true
  #activeAt: number
  /** The time of the first check that found the session without work, so that only the connection remains to be closed. */
  #overSince: number | undefined

  constructor(session: ServerHttp2Session, { socket, wire, limits, open, now }: DeadlinesOptions) {
    this.#session = session
    this.#socket = socket
    this.#wire = wire
    this.#limits = limits
    this.#open = open
    this.#activeAt = now
    this.headers = watchHeaders(session, socket, limits.headerTimeout)
  }

  /** Called at intervals. `time` is in ms of any clock. */
  check(time: number): void {
    const { headerTimeout, idleTimeout } = this.#limits
    this.#opened ??= time
    const unread = this.#open.cutUnread(time)
    if (this.active || this.#open.count > 0) this.#activeAt = time
    this.active = false
    const isOver = this.#session.destroyed || (this.#session.closed && this.#open.count === 0)
    if (unread >= idleTimeout + UNREAD_LINGER_TIME) endBroken(this.#socket, this.#wire)
    else if (isOver) this.#closeFinished(time)
    else if (!this.greeted && time - this.#opened >= headerTimeout) this.#session.destroy()
    else if (this.headers.overdue(time) || time - this.#activeAt >= idleTimeout) this.#session.close()
  }

  /** Closes a session without work. Node would wait without limit for the client: for the rest of a frame, and for its FIN. */
  #closeFinished(time: number): void {
    this.#overSince ??= time
    const over = time - this.#overSince
    if (over >= LINGER_TIME) this.#session.destroy()
    if (this.#socket.writableFinished) {
      if (over >= 2 * LINGER_TIME) this.#socket.destroy()
    } else if (over >= UNREAD_LINGER_TIME) endBroken(this.#socket, this.#wire)
  }
}
