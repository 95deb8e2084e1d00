import type { IncomingMessage } from 'node:http'
import { prefix64 } from '../http/ip.ts'
import type { PasswordSource } from '../password/source.ts'
import type { Verification } from '../password/verifier.ts'
import type { Logger } from '../record/log.ts'
import type { Clock } from '../system/clock.ts'
import { type Answer, clientOf, errorAnswer, readSmallBody, tooLarge } from './answer.ts'
import type { Sessions } from './sessions.ts'

/** What the sidecar's log says about viewers. */
export interface PageLog {
  signedIn(client: string): void
  /** Called for the first failure of a client in a minute, and for the one that reaches the limit. */
  loginFailed(client: string, count: number): void
  /** `grants`: how many were revoked; `which`: `all` or the id of a grant. */
  revoked(client: string, which: string, grants: number): void
}

/** Writes the lines about viewers. */
export function viewerLog(log: Logger): PageLog {
  return {
    signedIn: (client) => log.info({ client }, 'live page: signed in'),
    loginFailed: (client, failures) => log.warn({ client, failures }, 'live page: failed login'),
    revoked: (client, which, grants) => log.warn({ client, which, grants }, 'live page: tokens revoked'),
  }
}

/** The password of `admin.password_file`. */
export type PagePassword = Pick<PasswordSource, 'verify' | 'generation'>

export interface LoginDependencies {
  readonly clock: Clock
  readonly sessions: Sessions
  readonly password: PagePassword
  readonly log: Pick<PageLog, 'signedIn' | 'loginFailed'>
  /** The login page with a sentence about the failure. */
  readonly failed: (
    status: number,
    what: { readonly sentence: string; readonly fields?: Answer['fields'] },
  ) => Promise<Answer>
  readonly goToPage: (fields: Record<string, string>) => Answer
}

/** Answers `POST page/login`: a form with the field `password`. A new session replaces the one that the browser had. */
export function createLogin({
  clock,
  sessions,
  password,
  log,
  failed,
  goToPage,
}: LoginDependencies): (req: IncomingMessage) => Promise<Answer> {
  const attempts = createLoginAttempts(clock)

  /** A password that changes during the verification has to be verified again: the sessions that it ends do not include this one. */
  async function verified(candidate: string, client: string): Promise<Verification> {
    for (;;) {
      const { result, generation } = await password.verify(candidate, prefix64(client))
      if (generation === password.generation) return result
    }
  }

  return async (req) => {
    if (!/^application\/x-www-form-urlencoded *(?:;|$)/i.test(req.headers['content-type'] ?? '')) {
      return errorAnswer(
        415,
        'unsupported_media_type',
        'The login is a form: application/x-www-form-urlencoded.',
      )
    }
    const body = await readSmallBody(req)
    if (body === undefined) return tooLarge()
    const [candidate, ...others] = new URLSearchParams(body).getAll('password')
    if (candidate === undefined || others.length > 0) {
      return errorAnswer(400, 'invalid_request', 'The form has one field, password.')
    }
    const client = clientOf(req)
    const attempt = attempts.begin(client)
    if (attempt.kind === 'refused') {
      const seconds = String(attempt.retryAfter)
      const sentence = `Too many failed logins from your address. Try again in ${seconds} s.`
      return failed(429, { sentence, fields: { 'Retry-After': seconds } })
    }
    const result = await verified(candidate, client)
    if (result === 'overloaded') {
      attempt.forgive()
      return failed(503, { sentence: 'Too many logins at once. Try again.', fields: { 'Retry-After': '1' } })
    }
    if (result === 'wrong') {
      if (attempt.count === 1 || attempt.count === MOST_FAILURES) log.loginFailed(client, attempt.count)
      return failed(401, { sentence: 'Wrong password.' })
    }
    attempt.forgive()
    const earlier = sessions.find(req.headers.cookie)
    if (earlier !== undefined) sessions.end(earlier)
    log.signedIn(client)
    return goToPage({ 'Set-Cookie': sessions.begin() })
  }
}

/** One attempt to sign in. */
type Attempt =
  | { readonly kind: 'refused'; readonly retryAfter: number }
  | {
      readonly kind: 'admitted'
      /** The password was not wrong, so the attempt does not count. */
      forgive(): void
      /** How many of this window have failed, with this one. */
      readonly count: number
    }

interface Window {
  readonly until: number
  count: number
}

const MOST_FAILURES = 10
/** Milliseconds. */
const WINDOW = 60_000
const MOST_CLIENTS = 1_000
/** The key that clients share while the table is full. */
const OTHERS = 'others'

/**
 * Limits failed logins to `MOST_FAILURES` a minute from one client: an IPv4 address or an IPv6 /64. An attempt counts from its beginning,
 * so that attempts at the same time do not exceed the limit. An open window is never evicted: in a full table new clients share one, so an
 * attacker with many addresses gets no further guesses by them.
 */
export function createLoginAttempts(clock: Clock): { begin(client: string): Attempt } {
  const windows = new Map<string, Window>()
  return {
    begin(client) {
      const now = clock.monotonic()
      // All windows have the same length, so the first ones close first.
      for (const [key, { until }] of windows) {
        if (until > now) break
        windows.delete(key)
      }
      const own = prefix64(client)
      const key = windows.has(own) || windows.size < MOST_CLIENTS ? own : OTHERS
      const counted = windows.get(key) ?? { until: now + WINDOW, count: 0 }
      windows.set(key, counted)
      if (counted.count >= MOST_FAILURES) {
        return { kind: 'refused', retryAfter: Math.max(1, Math.ceil((counted.until - now) / 1000)) }
      }
      counted.count += 1
      return {
        kind: 'admitted',
        count: counted.count,
        forgive() {
          counted.count -= 1
        },
      }
    },
  }
}
