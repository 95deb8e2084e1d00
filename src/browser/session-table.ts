import { LRUCache } from 'lru-cache'
import { type SessionCookie, sessionIdsIn, setCookie } from '../http/browsers.ts'
import type { Fields } from '../http/fields.ts'
import type { Clock } from '../system/clock.ts'
import { mintToken } from '../tokens/mint.ts'
import type { Later } from '../tokens/state.ts'

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

/** Why a session ends without a request, and after its lifetime: values of the `reason` label of `postern_tokens_revoked_total`. */
const IDLE = 'browser_idle'
const OVER = 'browser_session_over'
/** A further value: a logout or a login ended the session. */
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

  /** Ends the sessions that are over. A request in flight, such as an open stream, is a use. Call it about once a second. */
  function sweep(now = clock.monotonic()): void {
    if (sessions.size === 0) return
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

  /** The live session of an id. This is a use of it. */
  function find(id: string, now = clock.monotonic()): Session<Login> | undefined {
    const session = sessions.get(id)
    if (session === undefined) return undefined
    if (endOf(session, now) !== undefined) {
      sweep(now)
      if (!sessions.has(id)) return undefined
    }
    session.usedAt = now
    return session
  }

  return {
    /** The value of `Set-Cookie` that removes the cookie. */
    clearedCookie: setCookie({ ...cookie, maxAge: 0 }, ''),
    has: (id: string): boolean => sessions.has(id),
    find,
    end,
    /** The live session of the cookie in these fields. This is a use of it. */
    carriedBy: (fields: Fields): Session<Login> | undefined =>
      sessionIdsIn(fields, cookie)
        .map((id) => find(id))
        .find((session) => session !== undefined),
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
