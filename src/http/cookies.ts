import { type Fields, fieldValues, withoutBlanks } from './fields.ts'

/**
 * The cookie of a browser's session. `__Host-`: browsers accept it only over TLS, for this host alone, and from no other host of the
 * domain.
 */
export const SESSION_COOKIE = '__Host-postern'

/** The name of a pair. `trim` also removes bytes that are no blanks, such as 0xA0: firmware that does the same would read that name. */
function nameOf(pair: string): string {
  return pair.split('=', 1)[0]?.trim() ?? ''
}

function pairsIn(fields: readonly string[]): string[] {
  return fields
    .flatMap((value) => value.split(';'))
    .map(withoutBlanks)
    .filter((pair) => pair !== '')
}

/**
 * The value of the session cookie; undefined if there is none, or if there are several cookies of that name: a browser has one, and another
 * is an attempt to choose the session (cookie tossing). Other cookies may contain the name: anyone in the domain can set them.
 */
export function sessionCookieIn(fields: Fields): string | undefined {
  const cookies = fieldValues(fields, 'cookie').filter((value) => value.includes(SESSION_COOKIE))
  const [pair, another] = pairsIn(cookies).filter((each) => each.startsWith(`${SESSION_COOKIE}=`))
  return another === undefined ? pair?.slice(SESSION_COOKIE.length + 1) : undefined
}

/** The cookies of Postern: those of browsers, and those of the live page (`admin/page-access.ts`), because cookies ignore ports. */
const OWN_NAME = /^(?:__Host-postern|postern-[0-9a-f]{12})$/

/** A `Cookie` field without sessions of Postern, with which the device could act as their owner. Undefined if none is left. */
export function withoutOwnCookies(cookies: string): string | undefined {
  if (!cookies.includes('postern')) return cookies
  const pairs = cookies.split(';')
  const kept = pairs.filter((pair) => !OWN_NAME.test(nameOf(pair)))
  if (kept.length === pairs.length) return cookies
  const rest = withoutBlanks(kept.join(';'))
  return rest === '' ? undefined : rest
}

/** Some browsers take `=name=x` for a cookie without a name, and send its value as it is. */
const SETS_SESSION = /^[\s=]*__Host-postern\s*(?:=|;|$)/i

/** Whether a `Set-Cookie` of the device sets a cookie that would come back as the session of a browser: the device may not choose it. */
export function setsSessionCookie(value: string): boolean {
  return SETS_SESSION.test(value)
}

/**
 * The session at the device, then the client's own cookies, unchanged, without those of the same names. A client can neither choose the
 * session nor hide it behind a quotation mark that it does not close.
 */
export function mergeCookies(client: readonly string[], session: string): string {
  const names = new Set(session.split(';').map(nameOf))
  return [session, ...pairsIn(client).filter((pair) => !names.has(nameOf(pair)))].join('; ')
}
