import { type Addressed, publicOrigin } from './browsers.ts'
import type { RequestHead } from './exchange.ts'
import { asCgi, type Fields } from './fields.ts'
import { isPathTarget, splitAbsolute } from './request-path.ts'

/** The words for a thing that a field overrides, and the words before them: `X-Original-URL`, `X-MethodOverride`, `Script-Name`. */
const NAMED = '(?:method|verb|path(?:-?info)?|prefix|redirect|script-?name|ur[il])'
const BEFORE =
  '(?:base|destination|forwarded|http|original|override|proxy|real|request|rewrite|target|tunneled)'

/**
 * Matches the names, as `asCgi` gives them, of fields from which a framework or server takes another path, method or host than those of the
 * request. A name that begins with `x-` only needs to contain one of the words.
 *
 * - A field for the host counts, because another host may select another site. `X-Forwarded-Host` does not: Postern writes it itself.
 * - nanohttp calls the method a verb and reads `X-HTTP-Verb`.
 * - With `Translate` (WebDAV of IIS) a client asks for the source of a program instead of its output.
 */
const OVERRIDE = new RegExp(
  [
    `^x-(?:.*-)?${BEFORE}{0,2}${NAMED}(?:override)?(?:-|$)`,
    `^(?:${BEFORE}-?){0,3}${NAMED}(?:-?override)?$`,
    '^x-(?!forwarded-host$)(?:.*-)?host(?:-override)?$',
    '^translate$',
  ].join('|'),
)

/** Whether a device may take the path, the method or the host of a request from a field with this name, in any spelling. */
export function isOverride(name: string): boolean {
  return OVERRIDE.test(asCgi(name))
}

/** Whether a device may take the path, the method or the host of a request from one of these fields. */
export function hasOverride(fields: Fields): boolean {
  return fields.some((text, at) => at % 2 === 0 && isOverride(text))
}

/** A request whose fields may name another path. */
interface Named extends Addressed {
  readonly head: Pick<RequestHead, 'fields' | 'secure' | 'survey'>
}

/**
 * The target in `Destination`, to which WebDAV copies or moves (RFC 4918 §10.3). Undefined without that field. Empty, so that no rule
 * admits it, if the field is repeated or is not a path on the host that the client used.
 */
export function destinationOf(request: Named): string | undefined {
  const [value, second] = request.head.survey.destination
  if (value === undefined) return undefined
  if (second !== undefined) return ''
  const { authority, target } = splitAbsolute(value) ?? { authority: undefined, target: value }
  const isHere = authority === undefined || isOwnAuthority(authority, request)
  return isHere && isPathTarget(target) ? target : ''
}

/**
 * Whether an authority is the host and port that the client used. An authority with a backslash or an `@` is not, because parsers disagree
 * about its host. The default port of either scheme may be left out, because a proxy in front may use another scheme than the client.
 */
export function isOwnAuthority(authority: string, request: Addressed): boolean {
  if (/[\\@]/.test(authority)) return false
  const own = [request.classified.host, publicOrigin(request)?.replace(/^https?:\/\//, '') ?? '']
  return ['http', 'https'].some((scheme) => {
    const named = URL.parse(`${scheme}://${authority}`)?.host
    return named !== undefined && own.some((host) => URL.parse(`${scheme}://${host}`)?.host === named)
  })
}
