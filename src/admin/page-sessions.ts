import { createHash, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../system/clock.ts'

/** The session of a viewer who has signed in. An open page uses it once a second. */
export interface PageSession {
  /** The digest of the session's id. */
  readonly key: string
  readonly begun: number
  usedAt: number
}

export type PageSessions = ReturnType<typeof createPageSessions>

/** A session ends when it is unused for `IDLE`, and after `LONGEST` in any case (ms). */
const IDLE = 12 * 3_600_000
const LONGEST = 7 * 24 * 3_600_000
const MOST_SESSIONS = 64

/**
 * Sessions in memory, by a random id of 256 bits in a cookie; only the digest of an id is kept. The server alone chooses ids, so a
 * cookie that an attacker sets gains nothing (fixation). The name of the cookie is different in each run, because cookies ignore ports
 * and several sidecars may be on one host.
 *
 * @param secure whether the page is served over TLS only
 */
export function createPageSessions(clock: Clock, secure: boolean, onEnd: (session: PageSession) => void) {
  /** If there are too many sessions, the least recently used one ends. */
  const sessions = new LRUCache<string, PageSession>({ max: MOST_SESSIONS, disposeAfter: onEnd })
  const name = `postern-${randomBytes(6).toString('hex')}`
  const cookie = (value: string, seconds: number): string =>
    `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`

  function end(session: PageSession): void {
    sessions.delete(session.key)
  }

  /** Whether the session is live. Ends it if it has expired; otherwise this is a use of it. */
  function keep(session: PageSession): boolean {
    const now = clock.monotonic()
    if (now - session.begun >= LONGEST || now - session.usedAt >= IDLE) end(session)
    session.usedAt = now
    return sessions.get(session.key) !== undefined
  }

  return {
    /** Begins a session and returns the value of `Set-Cookie`. */
    begin(): string {
      const id = randomBytes(32).toString('base64url')
      const now = clock.monotonic()
      sessions.set(digestOf(id), { key: digestOf(id), begun: now, usedAt: now })
      return cookie(id, LONGEST / 1000)
    },
    /** The live session of a `Cookie` field. This is a use of the session. */
    find(cookies = ''): PageSession | undefined {
      // All values are tried: another site of the domain can add cookies of this name.
      return cookies
        .split(/; */)
        .filter((pair) => pair.startsWith(`${name}=`))
        .map((pair) => sessions.get(digestOf(pair.slice(name.length + 1))))
        .find((session) => session !== undefined && keep(session))
    },
    keep,
    end,
    endAll: (): void => sessions.clear(),
    /** The value of `Set-Cookie` that removes the cookie. */
    clearedCookie: cookie('', 0),
  }
}

function digestOf(id: string): string {
  return createHash('sha256').update(id).digest('base64')
}
