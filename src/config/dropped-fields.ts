import { asCgi, isHopByHop } from '../http/fields.ts'
import { IETF_FIELD_NAMES, LIMIT_FIELD_NAMES } from '../http/limit-fields.ts'

/** A field name, or the beginning of names and a `*`. */
const PATTERN = /^[!#$%&'+\-.^_`|~0-9A-Za-z]+\*?$/

/** Why a pattern cannot be `null` in `upstream.headers`; `undefined` if it can. */
export function leftOutProblem(pattern: string): string | undefined {
  if (!PATTERN.test(pattern))
    return 'must have a field name such as Cookie as its name, or the beginning of names and a * such as "Sec-*"'
  return requestNeed(asCgi(pattern))
}

/** Why a pattern cannot stand in `upstream.drop_response`; `undefined` if it can. */
export function dropResponseProblem(pattern: string): string | undefined {
  return PATTERN.test(pattern)
    ? responseNeed(pattern)
    : 'must be a field name such as server, or the beginning of names and a * such as x-powered-*'
}

/** Why a request or a handshake cannot do without a field. */
function requestNeed(lower: string): string | undefined {
  if (lower === 'host') return 'must not be null: HTTP requires it, and upstream.host changes it'
  if (lower === 'content-length' || lower === 'transfer-encoding')
    return 'must not be null: without it the device cannot find the end of the body'
  if (lower === 'connection' || lower === 'upgrade')
    return 'must not be null: the sidecar writes it itself, for the connection to the device'
  if (lower.startsWith('sec-websocket-'))
    return 'must not be null: a WebSocket handshake needs it, and "Sec-*" leaves it alone'
  return undefined
}

/** The fields of responses that always pass, by what needs them. A `*` at the end stands for any rest. */
const NEEDED: readonly (readonly [why: string, ...names: string[]])[] = [
  ['without it the client cannot find the end of the body', 'content-length', 'transfer-encoding'],
  ['the client needs it to read the body', 'content-type', 'content-encoding', 'content-range'],
  [
    'the client needs it to act on the status',
    ...['location', 'allow', 'retry-after', 'accept-ranges', 'lock-token'],
  ],
  [
    'caches and upstream.share decide by it',
    ...['age', 'cache-control', 'cdn-cache-control', 'content-location', 'date', 'etag', 'expires'],
    ...['last-modified', 'pragma', 'surrogate-control', 'vary', 'x-accel-expires'],
  ],
  ['logins need it', 'www-authenticate', 'authentication-info', 'set-cookie', 'set-cookie2'],
  ['a WebSocket handshake needs it', 'sec-websocket-*'],
  [
    'browsers protect their users by it',
    ...['access-control-*', 'clear-site-data', 'content-disposition', 'content-security-policy*'],
    ...['cross-origin-*', 'document-policy*', 'feature-policy', 'integrity-policy*', 'origin-agent-cluster'],
    ...['permissions-policy*', 'referrer-policy', 'strict-transport-security', 'x-content-security-policy*'],
    ...['x-content-type-options', 'x-download-options', 'x-frame-options'],
    ...['x-permitted-cross-domain-policies', 'x-webkit-csp*', 'x-xss-protection'],
  ],
  [
    'the sidecar writes it itself',
    ...[...LIMIT_FIELD_NAMES, ...IETF_FIELD_NAMES, 'x-ratelimit-*', 'proxy-status', 'x-request-id'],
  ],
]

/** Why a client, a cache, a browser or the sidecar cannot do without a field of a response. */
function responseNeed(pattern: string): string | undefined {
  const seen = asCgi(pattern.replace(/\*$/, ''))
  if (isHopByHop(seen)) return `must not name ${pattern}: it belongs to one connection, and never passes`
  const [why] = NEEDED.find(([, ...names]) => names.some((name) => covers(name, seen))) ?? []
  return why === undefined ? undefined : `must not name ${pattern}: ${why}`
}

function covers(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern
}

/** Whether a field of a request is sent, by its name in lower case: the patterns without what a message or a handshake needs. */
export function requestKeeps(patterns: readonly string[]): (name: string) => boolean {
  return keepsBut(patterns, (name) => requestNeed(name) !== undefined)
}

/**
 * Whether a field of a response passes, by its name in lower case: `upstream.drop_response` without what a client, a cache, a browser or
 * the sidecar needs.
 *
 * @param read further fields that the sidecar reads
 */
export function responseKeeps(
  patterns: readonly string[],
  read: readonly string[],
): (name: string) => boolean {
  const own = new Set(read.map((name) => name.toLowerCase()))
  return keepsBut(patterns, (name) => own.has(name) || responseNeed(name) !== undefined)
}

/** Names that a CGI program cannot tell from a dropped one are dropped, too. */
function keepsBut(
  patterns: readonly string[],
  isNeeded: (name: string) => boolean,
): (name: string) => boolean {
  const isStart = (pattern: string): boolean => pattern.endsWith('*')
  const names = new Set(patterns.filter((pattern) => !isStart(pattern)).map(asCgi))
  const starts = patterns.filter(isStart).map((pattern) => asCgi(pattern.slice(0, -1)))
  const drops = (seen: string): boolean => names.has(seen) || starts.some((start) => seen.startsWith(start))
  return (name) => !drops(asCgi(name)) || isNeeded(name)
}
