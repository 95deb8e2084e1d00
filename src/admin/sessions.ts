import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../system/clock.ts'

/** A viewer who has signed in. An open page is a use of the session, each second. */
export interface Session {
  readonly begun: number
  usedAt: number
  live: boolean
}

export interface Sessions {
  /** Begins a session and returns the value of `Set-Cookie`. When there are too many, the least recently used one ends. */
  begin(): string
  /** The live session of a `Cookie` field. Counts as a use of it. */
  find(cookies: string | undefined): Session | undefined
  /** Whether the session is live; ends it if it has expired. Counts as a use of it. */
  keep(session: Session): boolean
  end(session: Session): void
  endAll(): void
  /** The value of `Set-Cookie` that removes the cookie. */
  readonly clearedCookie: string
}

/** Milliseconds. */
const IDLE = 12 * 3_600_000
const LONGEST = 7 * 24 * 3_600_000
const MOST_SESSIONS = 64
/** How many cookies of the name are tried: another site of the domain can add some. */
const MOST_COOKIES = 4

/**
 * Sessions in memory, by a random id of 256 bits in a cookie; only the digest of an id is kept. The server alone chooses ids, so a
 * cookie that an attacker sets gains nothing (fixation). The name of the cookie is different in each run, because cookies ignore ports
 * and several sidecars may be on one host.
 */
export function createSessions(clock: Clock, onEnd: (session: Session) => void): Sessions {
  const sessions = new Map<string, Session>()
  const name = `postern-${randomBytes(6).toString('hex')}`
  const cookie = (value: string, seconds: number): string =>
    `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict`

  function endKey(key: string, session: Session): void {
    sessions.delete(key)
    session.live = false
    onEnd(session)
  }

  function end(session: Session): void {
    for (const [key, each] of sessions) if (each === session) endKey(key, session)
  }

  function endIfExpired(session: Session): void {
    const now = clock.monotonic()
    if (now - session.begun >= LONGEST || now - session.usedAt >= IDLE) end(session)
  }

  function keep(session: Session): boolean {
    endIfExpired(session)
    session.usedAt = clock.monotonic()
    return session.live
  }

  function makeRoom(): void {
    for (const session of [...sessions.values()]) endIfExpired(session)
    if (sessions.size < MOST_SESSIONS) return
    const [oldest] = [...sessions.values()].toSorted((a, b) => a.usedAt - b.usedAt)
    if (oldest !== undefined) end(oldest)
  }

  return {
    begin() {
      makeRoom()
      const id = randomBytes(32).toString('base64url')
      const now = clock.monotonic()
      sessions.set(digestOf(id), { begun: now, usedAt: now, live: true })
      return cookie(id, LONGEST / 1000)
    },
    find(cookies = '') {
      const ids = cookies
        .split(';')
        .map((pair) => pair.trim())
        .filter((pair) => pair.startsWith(`${name}=`))
      for (const id of ids.slice(0, MOST_COOKIES)) {
        const session = sessions.get(digestOf(id.slice(name.length + 1)))
        if (session !== undefined && keep(session)) return session
      }
      return undefined
    },
    keep,
    end,
    endAll() {
      for (const [key, session] of [...sessions]) endKey(key, session)
    },
    clearedCookie: cookie('', 0),
  }
}

function digestOf(id: string): string {
  return createHash('sha256').update(id).digest('base64')
}
