import type { Refusal } from '../http/refusal.ts'
import { createPathTable, pathOf } from '../http/request-path.ts'
import type { Upstream } from './upstream.ts'

/** How often a path may be encoded over itself; nobody decodes more often, and each time costs a pass over it. */
const MOST_DECODINGS = 4

const TWO_SERVICES: Refusal = {
  kind: 'invalid-request',
  description: 'The path could be read as that of another service of the device.',
}

/** The device with its further services: each request goes to the one that takes its path. */
export function createRoutedUpstream(main: Upstream, routes: ReadonlyMap<string, Upstream>): Upstream {
  if (routes.size === 0) return main
  const serviceFor = createRouter(main, routes)
  return {
    forward(admission, exchange, listener) {
      const service = serviceFor(admission.target)
      if (service === undefined) listener.ended(TWO_SERVICES)
      else service.forward(admission, exchange, listener)
    },
    upgrade(admission, exchange, listener) {
      const service = serviceFor(admission.target)
      if (service === undefined) listener.ended(TWO_SERVICES)
      else service.upgrade(admission, exchange, listener)
    },
  }
}

/**
 * Finds the service for a target: its path is taken byte for byte, as it will be sent. Undefined where a reader who
 * decodes and resolves it would be at another service, so that none is reached by a path that looks like another's.
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
    if (!READ_DIFFERENTLY.test(path)) return service
    const readings = plainReadings(path)
    return readings?.every((reading) => serviceOf(reading) === service) ? service : undefined
  }
}

/** What nobody decodes, resolves or cuts has one reading. */
const READ_DIFFERENTLY = /[%;\\]|\/\.|\/\//

/** A character in more bytes of UTF-8 than it needs: an old decoder takes it, a strict one does not. */
const OVERLONG = /[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f]|\xf0[\x80-\x8f]/

/**
 * The path as eager readers have it: decoded to the end, backslashes turned, parameters cut, dots resolved; with and
 * without what stands behind an encoded `?` or `#`. Undefined where readers would not even agree on its characters.
 */
function plainReadings(path: string): readonly string[] | undefined {
  const decoded = decodeFully(path)
  if (decoded === undefined || decoded.includes('\0') || OVERLONG.test(decoded) || /%u/i.test(decoded)) {
    return undefined
  }
  const turned = decoded.replaceAll('\\', '/').replace(/;[^/]*/g, '')
  return [turned, turned.replace(/[?#].*$/s, '')].flatMap((path) => [
    resolved(path),
    resolved(collapsed(path)),
  ])
}

/** Some take an empty segment for one that `..` goes back over, others for none. */
function collapsed(path: string): string {
  return path.replace(/\/{2,}/g, '/')
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
    const next = text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
    if (next === text) return text
    text = next
  }
  return undefined
}
