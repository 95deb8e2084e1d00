import type { Forward } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import { createPathTable, MOST_DECODINGS, pathOf, percentDecoded } from '../http/request-path.ts'
import type { Upstream } from './upstream.ts'

const AMBIGUOUS: Refusal = {
  kind: 'invalid-request',
  description: 'The path could be read as that of another service of the device.',
}

/**
 * Forwards each request to the service of the device that its path belongs to.
 *
 * @param onRequest called first; undefined if no service shares responses
 */
export function createRoutedUpstream(
  main: Upstream,
  routes: ReadonlyMap<string, Upstream>,
  onRequest: ((exchange: Forward) => void) | undefined,
): Upstream {
  if (routes.size === 0 && onRequest === undefined) return main
  const serviceFor = routes.size === 0 ? () => main : createRouter(main, routes)
  return (exchange, listener, now) => {
    onRequest?.(exchange)
    const service = serviceFor(exchange.classified.target)
    if (service === undefined) listener.ended(exchange, AMBIGUOUS)
    else service(exchange, listener, now)
  }
}

/**
 * Finds the service for a target by its path, byte for byte as it will be sent. Undefined if a parser that decodes and resolves
 * the path would find another service: no service is reached by a path that looks like another's (path confusion).
 */
export function createRouter<Service>(
  main: Service,
  routes: ReadonlyMap<string, Service>,
): (target: string) => Service | undefined {
  const find = createPathTable(routes)
  const serviceOf = (path: string): Service => find(path) ?? main
  return (target) => {
    const path = pathOf(target)
    const service = serviceOf(path)
    if (!MAYBE_AMBIGUOUS.test(path)) return service
    const candidates = lenientPaths(path)
    return candidates?.every((candidate) => serviceOf(candidate) === service) ? service : undefined
  }
}

/** Matches the paths that parsers may decode, resolve or cut differently. */
const MAYBE_AMBIGUOUS = /[%;\\]|\/\.|\/\//

/** A character in more bytes of UTF-8 than necessary. Old decoders accept it, strict ones do not. */
const OVERLONG = /[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f]|\xf0[\x80-\x8f]/

/**
 * The paths that lenient parsers may see: fully decoded, backslashes as slashes, parameters cut, dot segments resolved; with and
 * without the part after an encoded `?` or `#`. Undefined if parsers may disagree on the characters themselves.
 */
function lenientPaths(path: string): readonly string[] | undefined {
  const decoded = decodeFully(path)
  if (decoded === undefined || decoded.includes('\0') || OVERLONG.test(decoded) || /%u/i.test(decoded)) {
    return undefined
  }
  const turned = decoded.replaceAll('\\', '/').replace(/;[^/]*/g, '')
  const whole = [turned, turned.replace(/[?#].*$/s, '')]
  // For `..`, some parsers count an empty segment as a segment, others do not.
  return [...whole, ...whole.map((each) => each.replace(/\/{2,}/g, '/'))].map(resolved)
}

/** RFC 3986 §5.2.4. */
function resolved(path: string): string {
  const segments: string[] = []
  const [, ...parts] = path.split('/')
  for (const [index, segment] of parts.entries()) {
    const isDots = segment === '.' || segment === '..'
    if (segment === '..') segments.pop()
    if (!isDots) segments.push(segment)
    else if (index === parts.length - 1) segments.push('')
  }
  return `/${segments.join('/')}`
}

function decodeFully(path: string): string | undefined {
  let text = path
  for (let pass = 0; pass < MOST_DECODINGS; pass += 1) {
    const next = percentDecoded(text)
    if (next === text) return text
    text = next
  }
  return undefined
}
