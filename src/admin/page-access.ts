import type { IncomingMessage } from 'node:http'
import { type AdminResponse, errorResponse } from './admin-response.ts'
import { namesLoopback } from './host-check.ts'
import type { PageSession, PageSessions } from './page-sessions.ts'

/** Who can connect to the listener: users who may open its Unix socket, all users of this machine, or also other machines. */
export type Reach = 'unix' | 'loopback' | 'network'

/** The viewer who sends a request, or why there is none: a login is needed, or the page is off. */
export type Access = Viewer | { readonly kind: 'login' } | { readonly kind: 'off'; readonly reason: string }

/** A person who may see the page. `session` is undefined if no login is needed. */
export interface Viewer {
  readonly kind: 'viewer'
  readonly session: PageSession | undefined
  readonly mayRevoke: boolean
}

/** The challenge of a 401, which RFC 9110 §15.5.2 requires. Browsers do not know this scheme, so they open no login dialog. */
export const CHALLENGE: Readonly<Record<string, string>> = { 'WWW-Authenticate': 'Cookie realm="Postern"' }

const REMEDY = 'Set admin.password_file to a file with one: postern hash-password > FILE writes it.\n'
const OFF = `The live page is off. admin.address is neither on loopback nor a Unix socket, so the page needs a password. ${REMEDY}`
const NAMED = `The live page needs a password, because the request names the sidecar otherwise than by a loopback address or localhost. ${REMEDY}`
const PROXIED = `The live page needs a password, because this request is in HTTP/1.0 or has a field of a proxy. ${REMEDY}`
const READ_ONLY = `Revoking on the page needs a password of the page; postern revoke needs none. ${REMEDY}`

/**
 * Fields that proxies add. Their values are ignored. Without a password, a request with such a field is refused, because its sender may be
 * on another machine.
 */
const PROXY_FIELD = /^(?:via|cdn-loop)$|forwarded|-(?:client)?ip$|^x-(?:original|envoy)-/

/**
 * Decides who may see the page. With a password: viewers with a session. Without a password: viewers on this machine. A request with a
 * field of a proxy, or in HTTP/1.0, which only proxies speak, is refused. Over loopback, `Host` must be a loopback address, as a browser on
 * this machine or behind an SSH tunnel sends it. Such a viewer may not revoke: the request may come from any user of the machine, or
 * through a proxy that adds no field.
 */
export function accessOf(
  req: IncomingMessage,
  sessions: Pick<PageSessions, 'carriedBy'> | undefined,
  reach: Reach,
): Access {
  if (sessions !== undefined) {
    const session = sessions.carriedBy(req.rawHeaders)
    return session === undefined ? { kind: 'login' } : { kind: 'viewer', session, mayRevoke: true }
  }
  if (reach === 'network') return { kind: 'off', reason: OFF }
  const isProxied = Object.keys(req.headers).some((name) => PROXY_FIELD.test(name))
  if (isProxied || req.httpVersion === '1.0') return { kind: 'off', reason: PROXIED }
  if (reach !== 'unix' && !namesLoopback(req)) return { kind: 'off', reason: NAMED }
  return { kind: 'viewer', session: undefined, mayRevoke: reach === 'unix' }
}

export function refuseAccess(access: Exclude<Access, { kind: 'viewer' }>): AdminResponse {
  return access.kind === 'login' ? loginRequired() : errorResponse(403, 'page_off', access.reason.trim())
}

export function refuseRevocation(): AdminResponse {
  return errorResponse(403, 'password_required', READ_ONLY.trim())
}

export function loginRequired(): AdminResponse {
  return errorResponse(401, 'login_required', 'Sign in first.', CHALLENGE)
}
