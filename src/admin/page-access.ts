import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../system/clock.ts'
import { type Answer, errorAnswer } from './answer.ts'
import { namesLoopback } from './host-check.ts'

/** A viewer who has signed in. An open page is a use of the session, each second. */
export interface PageSession {
  /** The digest of its id. */
  readonly key: string
  readonly begun: number
  usedAt: number
}

export type PageSessions = ReturnType<typeof createPageSessions>

/** Milliseconds. */
const IDLE = 12 * 3_600_000
const LONGEST = 7 * 24 * 3_600_000
const MOST_SESSIONS = 64

/**
 * Sessions in memory, by a random id of 256 bits in a cookie; only the digest of an id is kept. The server alone chooses ids, so a
 * cookie that an attacker sets gains nothing (fixation). The name of the cookie is different in each run, because cookies ignore ports
 * and several sidecars may be on one host.
 */
export function createPageSessions(clock: Clock, onEnd: (session: PageSession) => void) {
  /** When there are too many, the least recently used one ends. */
  const sessions = new LRUCache<string, PageSession>({ max: MOST_SESSIONS, disposeAfter: onEnd })
  const name = `postern-${randomBytes(6).toString('hex')}`
  const cookie = (value: string, seconds: number): string =>
    `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict`

  function end(session: PageSession): void {
    sessions.delete(session.key)
  }

  /** Whether the session is live; ends it if it has expired. Counts as a use of it. */
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
    /** The live session of a `Cookie` field. Counts as a use of it. */
    find(cookies = ''): PageSession | undefined {
      // Another site of the domain can add cookies of this name.
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

/** Who can connect to the listener: users who may open its Unix socket, all users of this machine, or other machines too. */
export type Reach = 'unix' | 'loopback' | 'network'

/** Who sends a request: a viewer, or the reason why the request gets nothing. */
export type Access = Viewer | { readonly kind: 'login' } | { readonly kind: 'off'; readonly reason: string }

/** Who may see the page. The session is undefined if no login is needed. */
export interface Viewer {
  readonly kind: 'viewer'
  readonly session: PageSession | undefined
  readonly mayRevoke: boolean
}

/** The challenge of a 401, which has to have one (RFC 9110 §15.5.2). Browsers ask for nothing by this scheme. */
export const CHALLENGE: Readonly<Record<string, string>> = { 'WWW-Authenticate': 'Cookie realm="Postern"' }

const REMEDY =
  'Set admin.password_file to a file with one: postern hash-password > FILE writes it. Then restart Postern.\n'
const OFF = `The live page is off. admin.address is neither on loopback nor a Unix socket, so the page needs a password. ${REMEDY}`
const NAMED = `The live page needs a password, because the request names the sidecar otherwise than by a loopback address or localhost. ${REMEDY}`
const PROXIED = `The live page needs a password, because this request is in HTTP/1.0 or has a field of a proxy. ${REMEDY}`
const READ_ONLY = `Revoking on the page needs a password of the page; postern revoke needs none. ${REMEDY}`

/**
 * Fields by which a proxy shows itself. Their values are not believed. Without a password, a request that has one is refused, because
 * its sender may be on another machine.
 */
const PROXY_FIELD = /^(?:via|cdn-loop)$|forwarded|-(?:client)?ip$|^x-(?:original|envoy)-/

/**
 * Decides who may see the page. With a password, viewers with a session. Without one, viewers on this machine: a request with a field of a
 * proxy, or in HTTP/1.0, which only proxies speak, gets nothing. Over loopback its `Host` must be a loopback address, as that of a browser
 * on this machine or behind an SSH tunnel is, and it may not revoke: it may come from any user, or through a proxy that names nothing.
 */
export function accessOf(
  req: IncomingMessage,
  sessions: Pick<PageSessions, 'find'> | undefined,
  reach: Reach,
): Access {
  if (sessions !== undefined) {
    const session = sessions.find(req.headers.cookie)
    return session === undefined ? { kind: 'login' } : { kind: 'viewer', session, mayRevoke: true }
  }
  if (reach === 'network') return { kind: 'off', reason: OFF }
  const isProxied = Object.keys(req.headers).some((name) => PROXY_FIELD.test(name))
  if (isProxied || req.httpVersion === '1.0') return { kind: 'off', reason: PROXIED }
  if (reach !== 'unix' && !namesLoopback(req)) return { kind: 'off', reason: NAMED }
  return { kind: 'viewer', session: undefined, mayRevoke: reach === 'unix' }
}

export function refuseAccess(access: Exclude<Access, { kind: 'viewer' }>): Answer {
  return access.kind === 'login' ? loginRequired() : errorAnswer(403, 'page_off', access.reason.trim())
}

export function refuseRevocation(): Answer {
  return errorAnswer(403, 'password_required', READ_ONLY.trim())
}

export function loginRequired(): Answer {
  return errorAnswer(401, 'login_required', 'Sign in first.', CHALLENGE)
}
