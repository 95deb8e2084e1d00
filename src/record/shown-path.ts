import { pathOf } from '../http/request-path.ts'
import type { Recorded } from './recorded.ts'

/** `user:password@` behind the scheme, also in a target that no rule allows. */
const USER_INFO = /^([a-z][a-z\d+.-]*:\/+)?[^/]*@/i

/** The path of a request to be logged or shown: without the query and, in absolute form, without user info. It is kept with the head. */
export function shownPath(head: Recorded['head']): string {
  const path = pathOf(head.target)
  head.shown = path.startsWith('/') ? path : path.replace(USER_INFO, '$1')
  return head.shown
}
