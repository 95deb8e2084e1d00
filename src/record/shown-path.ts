import type { RecordExchange } from './record-exchange.ts'

/** Scheme, `user:password@`, host and port, and the rest. It also matches targets that are refused. */
const PARTS = /^([a-z][a-z\d+.-]*:\/+)?([^/?#]*@)?([^/?#]*)(.*)$/is

/** A host, and perhaps a port. */
const AUTHORITY = /^(?:[^:]*|\[[^\]]*\])(?::\d*)?$/

/**
 * The path of a request for the log, kept with the head: without query and fragment, which may hold a token (only a refused target has a
 * fragment), and in absolute form without user info. If a password in the user info has an unencoded `?`, `#` or `/`, that ends the
 * authority, and the rest of the password looks like a path, query or fragment: then only the scheme is shown.
 */
export function shownPath(head: RecordExchange['head']): string {
  const { target } = head
  head.shown = target.startsWith('/') ? pathOf(target) : withoutUserInfo(target)
  return head.shown
}

function pathOf(target: string): string {
  const end = target.search(/[?#]/)
  return end < 0 ? target : target.slice(0, end)
}

function withoutUserInfo(target: string): string {
  const [, scheme = '', , authority = '', rest = ''] = PARTS.exec(target) ?? []
  const mayBeUserInfo = rest.includes('@') && (!rest.startsWith('/') || !AUTHORITY.test(authority))
  return mayBeUserInfo ? scheme : `${scheme}${authority}${pathOf(rest)}`
}
