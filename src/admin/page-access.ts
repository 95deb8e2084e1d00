import type { IncomingMessage } from 'node:http'
import { type Answer, errorAnswer } from './answer.ts'
import { namesLoopback } from './host-check.ts'
import type { PageSession, PageSessions } from './page-sessions.ts'

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
