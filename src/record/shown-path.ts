import type { Recorded } from './recorded.ts'

/** The scheme, `user:password@`, host and port, and what follows, also in a target that no rule allows. */
const PARTS = /^([a-z][a-z\d+.-]*:\/+)?([^/?#]*@)?([^/?#]*)(.*)$/is

/** A host, and perhaps a port. */
const AUTHORITY = /^(?:[^:]*|\[[^\]]*\])(?::\d*)?$/

/**
 * The path of a request for the log: without the query, the fragment of a refused target, which may hold a token, and, in absolute form, without
 * user info. It is kept with the head. A `?`, `#` or `/` in a password that is not encoded ends the authority, and the rest of the password looks
 * like a path, query or fragment: then only the scheme is shown.
 */
export function shownPath(head: Recorded['head']): string {
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
