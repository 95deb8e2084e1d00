import { LRUCache } from 'lru-cache'
import { type SessionCookie, sessionIdsIn, setCookie } from '../http/browsers.ts'
import type { Fields } from '../http/fields.ts'
import type { Clock } from '../system/clock.ts'
import type { Later } from '../system/later.ts'
import { mintToken } from '../tokens/mint.ts'

/** The session of a browser that has logged in. Times are on the monotonic clock (ms). */
export interface Session<Login> {
  readonly id: string
  /** What the session stands for. */
  readonly login: Login
  /** When the last request came, or when one was last seen in flight. */
  usedAt: number
  /** When the session ends, however it is used. */
  readonly endsAt: number
}

/**
 * Why a session ends: it was idle, its lifetime is over, or a login, a logout or too many sessions ended it. Only sessions that stand for a
 * grant are counted by it, in `postern_tokens_revoked_total`.
 */
const IDLE = 'browser_idle'
const OVER = 'browser_session_over'
const BY_CLIENT = 'client'

interface SessionRules<Login> {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly cookie: SessionCookie
  /** Sessions of browsers that never log out pile up. Above this number, the session that is unused for longest ends. */
  readonly most: number
  /** How long a session may be unused (ms). */
  readonly idle: () => number
  /** How long a session lasts, however it is used (ms). */
  readonly lifetime: () => number
  /** Returns whether a request in flight uses a session. Default: none does. */
  readonly inFlight?: () => (login: Login) => boolean
  /** Called with the sessions that one event ends. Its result is that of `end`. */
  readonly onEnd: (ended: readonly Session<Login>[], reason: string) => Later<boolean>
}

export type SessionTable<Login> = ReturnType<typeof createSessionTable<Login>>

/**
 * The sessions of the browsers that have logged in at one listener, by a random id in a cookie. Only the sidecar chooses ids, so a cookie
 * that an attacker sets gains nothing (session fixation). A look-up compares a hash of the whole id with a secret seed, so its time tells
 * nothing about a part of the id.
 */
export function createSessionTable<Login>({
  clock,
  cookie,
  most,
  idle,
  lifetime,
  inFlight = () => () => false,
  onEnd,
}: SessionRules<Login>) {
  /** In the order of use. With `max` in place of `maxSize`, the cache would allocate memory for all its entries at the start. */
  const sessions = new LRUCache<string, Session<Login>>({
    maxSize: most,
    sizeCalculation: () => 1,
    disposeAfter(session, _, why) {
      if (why === 'evict') void onEnd([session], BY_CLIENT)
    },
  })

  /** Ends the sessions that have not ended yet. */
  function end(some: readonly Session<Login>[], reason = BY_CLIENT): Later<boolean> {
    const ended = some.filter(({ id }) => sessions.delete(id))
    return ended.length === 0 || onEnd(ended, reason)
  }

  /** Why a session is over at this time; undefined if it is not. */
  function endOf({ usedAt, endsAt }: Session<Login>, now: number): string | undefined {
    if (now >= endsAt) return OVER
    return now - usedAt >= idle() ? IDLE : undefined
  }

  /**
   * Ends the sessions that are over. A request in flight, such as an open stream, is a use. Needed once a second only where `onEnd` has to
   * come in time: `find` ends the others.
   */
  function sweep(): void {
    if (sessions.size === 0) return
    const now = clock.monotonic()
    const all = [...sessions.values()]
    const isInFlight = inFlight()
    for (const session of all) {
      if (!isInFlight(session.login)) continue
      session.usedAt = now
      sessions.get(session.id)
    }
    for (const [reason, some] of Map.groupBy(all, (session) => endOf(session, now)))
      if (reason !== undefined) void end(some, reason)
  }

  /**
   * The live session of an id. This is a use of it.
   *
   * @param at when the request came, which may be before the last use
   */
  function find(id: string, at = clock.monotonic()): Session<Login> | undefined {
    const session = sessions.get(id)
    if (session === undefined) return undefined
    if (endOf(session, at) !== undefined) {
      sweep()
      if (!sessions.has(id)) return undefined
    }
    session.usedAt = Math.max(session.usedAt, at)
    return session
  }

  /** The first live session in the cookies of these fields. This is a use of it. */
  function carriedBy(fields: Fields): Session<Login> | undefined {
    for (const id of sessionIdsIn(fields, cookie)) {
      const session = find(id)
      if (session !== undefined) return session
    }
    return undefined
  }

  /** Logs out: ends the session of every cookie in these fields, also where several cookies count as none. */
  function endCarriedBy(fields: Fields): Later<boolean> {
    const ids = sessionIdsIn(fields, { ...cookie, several: 'each-is-tried' })
    return end(ids.flatMap((id) => sessions.peek(id) ?? []))
  }

  return {
    /** The value of `Set-Cookie` that removes the cookie. */
    clearedCookie: setCookie({ ...cookie, maxAge: 0 }, ''),
    has: (id: string): boolean => sessions.has(id),
    find,
    end,
    carriedBy,
    endCarriedBy,
    /** Begins a session and returns the value of `Set-Cookie`. */
    begin(login: Login): string {
      const id = mintToken()
      const now = clock.monotonic()
      sessions.set(id, { id, login, usedAt: now, endsAt: now + lifetime() })
      return setCookie(cookie, id)
    },
    /** Removes a session without `onEnd`: what it stands for has ended. */
    forget: ({ id }: Session<Login>): boolean => sessions.delete(id),
    endAll: (reason?: string): Later<boolean> => end([...sessions.values()], reason),
    sweep,
  }
}
