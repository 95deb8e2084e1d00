import { isAmbiguousPath, pathOf } from '../http/ambiguous-path.ts'
import { createPathTable } from '../http/path-table.ts'
import type { Refusal } from '../http/refusal.ts'
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
    forward: async (admission, exchange) =>
      serviceFor(admission.target)?.forward(admission, exchange) ?? TWO_SERVICES,
    upgrade: async (admission, exchange) =>
      serviceFor(admission.target)?.upgrade(admission, exchange) ?? TWO_SERVICES,
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
  return (target) => {
    const path = pathOf(target)
    const service = find(path) ?? main
    if (!isAmbiguousPath(path)) return service
    const plain = plainestReading(path)
    return plain !== undefined && (find(plain) ?? main) === service ? service : undefined
  }
}

/** The path as the most eager reader has it: decoded to the end, backslashes turned, parameters cut, dots resolved. */
function plainestReading(path: string): string | undefined {
  const decoded = decodeFully(path)
  if (decoded === undefined) return undefined
  const segments: string[] = []
  const parts = decoded
    .replace(/[?#\0].*$/s, '')
    .replaceAll('\\', '/')
    .split('/')
  for (const part of parts) {
    const segment = part.replace(/;.*$/s, '')
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  const isFolder = segments.length > 0 && /^(?:\.{0,2})$/.test(parts.at(-1) ?? '')
  return `/${segments.join('/')}${isFolder ? '/' : ''}`
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
