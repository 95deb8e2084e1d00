import type { DeviceHead } from '../device/response-handler.ts'
import type { Forward } from '../http/admission.ts'
import type { RequestHead } from '../http/exchange.ts'
import { type Fields, fieldValues, isHopByHop, listMembers } from '../http/fields.ts'

export interface ResponseFieldSettings {
  /** The Host that the device was given, if it was not the client's own. */
  readonly host: string | undefined
  /** Scheme, host and port under which the sidecar reaches the device, e.g. `http://127.0.0.1:8080`. */
  readonly origin: string
  /** Names of the device's own that the limit's replace, in lower case. */
  readonly replaced: readonly string[]
}

/** The fields that the client gets of a device's header, and the settings by which they were chosen. */
interface Kept {
  readonly replaced: ResponseFieldSettings['replaced']
  readonly fields: Fields
}

/** By the device's header: a device that repeats a head gives the same array again (`HeadMemory`). */
const keptBefore = new WeakMap<Fields, Kept>()

/**
 * The device's fields as the client gets them: in their order and casing, without those of the device's connection, and without
 * those that the limit's replace (C16, C21, C22). The limit's fields are to follow them.
 */
export function responseFields(
  { status, fields: device, repeated }: Pick<DeviceHead, 'status' | 'fields' | 'repeated'>,
  head: RequestHead,
  admission: Forward,
  settings: ResponseFieldSettings,
): Fields {
  const { replaced } = settings
  const known = repeated ? keptBefore.get(device) : undefined
  if (known?.replaced === replaced) return known.fields
  const options = connectionOptions(device)
  const fields: string[] = []
  let forAll = true
  for (let i = 0; i + 1 < device.length; i += 2) {
    const name = device[i] ?? ''
    const lower = lowerName(name)
    if (isHopByHop(lower) || replaced.includes(lower) || options.includes(lower)) continue
    // Where there is never a body, a length would only mislead (RFC 9110 §8.6).
    if (lower === 'content-length' && (status < 200 || status === 204)) continue
    const value = device[i + 1] ?? ''
    const named = lower === 'location' || lower === 'content-location'
    if (named) forAll = false
    fields.push(name, named ? publicLocation(value, head, admission, settings) : value)
  }
  // A `Location` depends on the request.
  if (repeated && forAll) keptBefore.set(device, { replaced, fields })
  return fields
}

const NONE: readonly string[] = []

/** The fields that `Connection` names, in lower case. They belong to the connection too (RFC 9110 §7.6.1). */
export function connectionOptions(fields: Fields): readonly string[] {
  const connection = fieldValues(fields, 'connection')
  // `Keep-Alive` is removed in any case.
  const usual = connection.length === 0 || (connection.length === 1 && connection[0] === 'keep-alive')
  return usual ? NONE : listMembers(connection)
}

/** Of the few names that a device uses again and again: to look them up is cheaper, as `NameMemory` gives the same strings. */
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
 * A device that names itself in a redirect knows only the address it was built with, or the Host it was asked for
 * with its own scheme, and maybe its own port. All lead past the sidecar or nowhere, so they become the address that
 * the client used.
 */
function publicLocation(
  value: string,
  head: RequestHead,
  admission: Forward,
  { origin, host = admission.host }: ResponseFieldSettings,
): string {
  const absolute = /^(https?):\/\/([^/?#]*)(.*)$/i.exec(value)
  const seen = publicOrigin(head, admission)
  if (absolute === null || seen === undefined) return value
  const [, scheme = '', authority = '', rest = ''] = absolute
  const device = new URL(origin)
  const named = `${scheme}://${authority}`
  const namesDevice = sameOrigin(named, device) || sameOrigin(named, withHostname(device, host))
  const namesHost =
    authority.toLowerCase() === host.toLowerCase() && `${scheme.toLowerCase()}:` === device.protocol
  return namesDevice || namesHost ? `${seen}${rest}` : value
}

/** The device's origin under the name that it was asked for: nginx adds the port that it listens on. */
function withHostname(device: URL, host: string): URL {
  const renamed = new URL(device)
  renamed.hostname = host.replace(/:\d*$/, '')
  return renamed
}

function sameOrigin(candidate: string, device: URL): boolean {
  return URL.canParse(candidate) && new URL(candidate).origin === device.origin
}

/** Where the client thinks that it is; a trusted proxy in front knows better than we do. */
function publicOrigin(head: RequestHead, admission: Forward): string | undefined {
  const said = (name: string): string | undefined =>
    admission.peerTrusted ? fieldValues(head.fields, name)[0] : undefined
  const host = said('x-forwarded-host') ?? admission.host
  if (host === '') return undefined
  const proto = said('x-forwarded-proto')?.toLowerCase()
  const scheme = proto === 'http' || proto === 'https' ? proto : head.secure ? 'https' : 'http'
  return `${scheme}://${host}`
}
