import { randomBytes } from 'node:crypto'
import { createSessionTable, type Session, type SessionTable } from '../browser/session-table.ts'
import { VIEWER_COOKIE } from '../http/browsers.ts'
import type { Clock } from '../system/clock.ts'

/** The session of a viewer who has signed in. It stands for nothing else, so its login is undefined. An open page uses it once a second. */
export type PageSession = Session<undefined>

export type PageSessions = SessionTable<undefined>

/** A session ends when it is unused for `IDLE`, and after `LONGEST` in any case (ms). */
const IDLE = 12 * 3_600_000
const LONGEST = 7 * 24 * 3_600_000
const MOST_SESSIONS = 64

/**
 * The sessions of viewers. The name of the cookie is different in each run, because cookies ignore ports and several sidecars may be on one
 * host. All ids in a request are tried: another site of the domain can add cookies of this name.
 *
 * @param secure whether the page is served over TLS only
 */
export function createPageSessions(
  clock: Clock,
  secure: boolean,
  onEnd: (session: PageSession) => void,
): PageSessions {
  return createSessionTable({
    clock,
    cookie: {
      name: `${VIEWER_COOKIE}${randomBytes(6).toString('hex')}`,
      secure,
      maxAge: LONGEST / 1000,
      several: 'each-is-tried',
    },
    most: MOST_SESSIONS,
    idle: () => IDLE,
    lifetime: () => LONGEST,
    onEnd(ended) {
      ended.forEach(onEnd)
      return true
    },
  })
}
