import type { DeviceHead } from '../device/response-handler.ts'
import type { Forward, ResponseHead } from '../http/exchange.ts'
import { type Fields, fieldValues, isHopByHop, listMembers } from '../http/fields.ts'

export interface ResponseFieldSettings {
  /** The `Host` that the device received, if it was not the client's own. */
  readonly host: string | undefined
  /** Scheme, host and port by which the sidecar reaches the device, for example `http://127.0.0.1:8080`. */
  readonly origin: string
  /** Names of the device's fields that the rate-limit fields replace, in lower case. */
  readonly replaced: readonly string[]
}

interface Projection extends ResponseHead {
  /** The setting by which the fields were chosen. */
  readonly replaced: ResponseFieldSettings['replaced']
}

/** By the device's header: for a remembered head `HeadMemory` returns the same array. */
const projections = new WeakMap<Fields, Projection>()

/**
 * The head of the device's response for the client, its fields in the same order and letter case: without those of the device's
 * connection, and without those that the rate-limit fields replace (C16, C21, C22), which the exchange adds.
 */
export function responseHead(
  { status, reason, fields: device, remembered }: DeviceHead,
  request: Forward,
  settings: ResponseFieldSettings,
): ResponseHead {
  const { replaced } = settings
  const known = remembered ? projections.get(device) : undefined
  if (known?.replaced === replaced) return known
  const options = connectionOptions(device)
  const fields: string[] = []
  let sameForAll = true
  for (let i = 0; i + 1 < device.length; i += 2) {
    const name = device[i] ?? ''
    const lower = lowerName(name)
    if (isHopByHop(lower) || replaced.includes(lower) || options.includes(lower)) continue
    // Such a response has no body and must not have a length (RFC 9110 §8.6).
    if (lower === 'content-length' && (status < 200 || status === 204)) continue
    const value = device[i + 1] ?? ''
    const named = lower === 'location' || lower === 'content-location'
    if (named) sameForAll = false
    fields.push(name, named ? publicLocation(value, request, settings) : value)
  }
  // A `Location` depends on the request, so a header with one is computed each time.
  const projection = { status, reason, replaced, fields, reusable: remembered && sameForAll }
  if (projection.reusable) projections.set(device, projection)
  return projection
}

const NONE: readonly string[] = []

/** The fields that `Connection` names, in lower case. They belong to the connection too (RFC 9110 §7.6.1). */
export function connectionOptions(fields: Fields): readonly string[] {
  const connection = fieldValues(fields, 'connection')
  // `Keep-Alive` is removed in any case.
  const usual = connection.length === 0 || (connection.length === 1 && connection[0] === 'keep-alive')
  return usual ? NONE : listMembers(connection)
}

/** Names that devices use often. A look-up costs less than `toLowerCase`, because `NameMemory` returns the same strings. */
const lowerNames = new Map<string, string>()
const MOST_NAMES = 500

function lowerName(name: string): string {
  const known = lowerNames.get(name)
  if (known !== undefined) return known
  const lower = name.toLowerCase()
  if (lowerNames.size < MOST_NAMES) lowerNames.set(name, lower)
  return lower
}

/**
 * Replaces the device's address in a redirect by the address that the client used. The device knows only its own address, or the
 * `Host` of the request with its own scheme and sometimes its own port. Each of these bypasses the sidecar or leads nowhere.
 */
function publicLocation(
  value: string,
  request: Forward,
  { origin, host = request.classified.host }: ResponseFieldSettings,
): string {
  const absolute = /^(https?):\/\/([^/?#]*)(.*)$/i.exec(value)
  const used = publicOrigin(request)
  if (absolute === null || used === undefined) return value
  const [, scheme = '', authority = '', rest = ''] = absolute
  const device = new URL(origin)
  const named = `${scheme}://${authority}`
  const namesDevice = sameOrigin(named, device) || sameOrigin(named, withHostname(device, host))
  const namesHost =
    authority.toLowerCase() === host.toLowerCase() && `${scheme.toLowerCase()}:` === device.protocol
  return namesDevice || namesHost ? `${used}${rest}` : value
}

/** The device's origin with the host name of the request: nginx adds the port that it listens on. */
function withHostname(device: URL, host: string): URL {
  const renamed = new URL(device)
  renamed.hostname = host.replace(/:\d*$/, '')
  return renamed
}

function sameOrigin(candidate: string, device: URL): boolean {
  return URL.canParse(candidate) && new URL(candidate).origin === device.origin
}

/** The origin that the client used. A trusted proxy in front names it; otherwise it is this request's. */
function publicOrigin({ head, client, classified }: Forward): string | undefined {
  const reported = (name: string): string | undefined =>
    client.peerTrusted ? fieldValues(head.fields, name)[0] : undefined
  const host = reported('x-forwarded-host') ?? classified.host
  if (host === '') return undefined
  const proto = reported('x-forwarded-proto')?.toLowerCase()
  const scheme = proto === 'http' || proto === 'https' ? proto : head.secure ? 'https' : 'http'
  return `${scheme}://${host}`
}
