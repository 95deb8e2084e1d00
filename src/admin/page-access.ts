import type { IncomingMessage } from 'node:http'
import { type Answer, errorAnswer } from './answer.ts'
import { namesLoopback } from './host-check.ts'
import type { Session, Sessions } from './sessions.ts'

/** Who sends a request: a viewer, or the reason why the request gets nothing. */
export type Access =
  | { readonly kind: 'viewer'; readonly session: Session | undefined }
  | { readonly kind: 'login' }
  | { readonly kind: 'off'; readonly reason: string }

/** The challenge of a 401, which has to have one (RFC 9110 §15.5.2). Browsers ask for nothing by this scheme. */
export const CHALLENGE: Readonly<Record<string, string>> = { 'WWW-Authenticate': 'Cookie realm="Postern"' }

const REMEDY =
  'Set admin.password_file to a file with one: postern hash-password > FILE writes it. Then restart Postern.\n'
const OFF = `The live page is off. admin.address is neither on loopback nor a Unix socket, so the page needs a password. ${REMEDY}`
const NAMED = `The live page needs a password, because the request names the sidecar otherwise than by a loopback address or localhost. ${REMEDY}`
const PROXIED = `The live page needs a password, because a proxy forwarded this request. ${REMEDY}`

/**
 * Fields by which a proxy shows itself. Their values are not believed. Without a password, a request that has one is refused, because
 * its sender may be on another machine.
 */
const PROXY_FIELD =
  /^(?:forwarded|via|x-forwarded-.*|x-real-ip|x-client-ip|x-original-host|x-envoy-external-address|true-client-ip|cf-connecting-ip)$/

/**
 * Decides who may see the page. With a password, viewers with a session. Without one, viewers on this machine: `isLocal` says whether
 * only they can connect, and a request over TCP has to name a loopback address, as a browser on this machine or behind an SSH tunnel does.
 */
export function accessOf(
  req: IncomingMessage,
  sessions: Pick<Sessions, 'find'> | undefined,
  isLocal: boolean,
): Access {
  if (sessions !== undefined) {
    const session = sessions.find(req.headers.cookie)
    return session === undefined ? { kind: 'login' } : { kind: 'viewer', session }
  }
  if (!isLocal) return { kind: 'off', reason: OFF }
  if (Object.keys(req.headers).some((name) => PROXY_FIELD.test(name))) return { kind: 'off', reason: PROXIED }
  const isUnixSocket = req.socket.remoteAddress === undefined
  if (!isUnixSocket && !namesLoopback(req)) return { kind: 'off', reason: NAMED }
  return { kind: 'viewer', session: undefined }
}

/** Refuses a request that only a viewer may send. */
export function refuseAccess(access: Exclude<Access, { kind: 'viewer' }>): Answer {
  return access.kind === 'login' ? loginRequired() : errorAnswer(403, 'page_off', access.reason.trim())
}

export function loginRequired(): Answer {
  return errorAnswer(401, 'login_required', 'Sign in first.', CHALLENGE)
}
