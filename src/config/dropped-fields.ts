import { asCgi } from '../http/fields.ts'

/** A field name, or the beginning of names and a `*`. */
const PATTERN = /^[!#$%&'+\-.^_`|~0-9A-Za-z]+\*?$/

/** Why a pattern cannot stand in `upstream.drop`; `undefined` if it can. */
export function dropProblem(pattern: string): string | undefined {
  return PATTERN.test(pattern)
    ? needProblem(pattern)
    : 'must be a field name such as cookie, or the beginning of names and a * such as sec-*'
}

/** Why a message or a handshake needs a field; `undefined` if none does. */
function needProblem(pattern: string): string | undefined {
  const lower = pattern.toLowerCase()
  if (lower === 'host') return 'must not name Host: HTTP requires it, and upstream.host changes it'
  if (lower === 'content-length' || lower === 'transfer-encoding')
    return `must not name ${pattern}: without it the device cannot find the end of the body`
  if (lower === 'connection' || lower === 'upgrade')
    return `must not name ${pattern}: the sidecar writes it itself, for the connection to the device`
  if (lower.startsWith('sec-websocket-'))
    return `must not name ${pattern}: a WebSocket handshake needs it, and sec-* leaves it alone`
  return undefined
}

/**
 * Returns the test for `upstream.drop`: whether the device gets a field, by its name in lower case. It gets each one that a message or a
 * handshake needs, whatever the patterns say, and no name that a CGI program reads as a dropped one.
 */
export function keepsBut(patterns: readonly string[]): (name: string) => boolean {
  const isStart = (pattern: string): boolean => pattern.endsWith('*')
  const names = new Set(patterns.filter((pattern) => !isStart(pattern)).map(asCgi))
  const starts = patterns.filter(isStart).map((pattern) => asCgi(pattern.slice(0, -1)))
  const drops = (seen: string): boolean => names.has(seen) || starts.some((start) => seen.startsWith(start))
  return (name) => !drops(asCgi(name)) || needProblem(name) !== undefined
}
