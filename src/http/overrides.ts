import { type Addressed, publicOrigin } from './browsers.ts'
import type { RequestHead } from './exchange.ts'
import { asCgi, type Fields } from './fields.ts'
import { isPathTarget, splitAbsolute } from './request-path.ts'

/** Words for what a field overrides, and words that stand before them: `X-Original-URL`, `X-MethodOverride`, `Script-Name`. */
const NAMED = '(?:method|verb|path(?:-?info)?|prefix|redirect|script-?name|ur[il])'
const BEFORE =
  '(?:base|destination|forwarded|http|original|override|proxy|real|request|rewrite|target|tunneled)'

/**
 * Names of fields from which a framework or server takes another path or method than those of the request line, as `asCgi` gives
 * them. Those that begin with `x-` need only contain such a word.
 *
 * - A name of another host counts, because it may select another site; not `X-Forwarded-Host`, which Postern writes itself.
 * - A framework that calls the method a verb reads `X-HTTP-Verb` (nanohttp).
 * - `Translate` (WebDAV of IIS) asks for the source of a program instead of its page.
 */
const OVERRIDE = new RegExp(
  [
    `^x-(?:.*-)?${BEFORE}{0,2}${NAMED}(?:override)?(?:-|$)`,
    `^(?:${BEFORE}-?){0,3}${NAMED}(?:-?override)?$`,
    '^x-(?!forwarded-host$)(?:.*-)?host(?:-override)?$',
    '^translate$',
  ].join('|'),
)

/** Whether a device may take the path, the method or the host of a request from a field of this name, in any spelling. */
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
 * The target that `Destination` names, to which WebDAV copies or moves (RFC 4918 §10.3). Undefined without that field. Empty if the field
 * is repeated, or cannot be read as a path of the host that the client used: nothing may admit it.
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
 * Whether an authority names Postern as the client does. One with a backslash or an `@` does not, because parsers disagree about its host. The
 * default port of either scheme may be left out, because a proxy in front may speak another one.
 */
export function isOwnAuthority(authority: string, request: Addressed): boolean {
  if (/[\\@]/.test(authority)) return false
  const own = [request.classified.host, publicOrigin(request)?.replace(/^https?:\/\//, '') ?? '']
  return ['http', 'https'].some((scheme) => {
    const named = URL.parse(`${scheme}://${authority}`)?.host
    return named !== undefined && own.some((host) => URL.parse(`${scheme}://${host}`)?.host === named)
  })
}
