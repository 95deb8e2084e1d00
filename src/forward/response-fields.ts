import type { ResponseChanges } from '../config/response-header-field.ts'
import type { DeviceHead } from '../device/request.ts'
import { setsSessionCookie } from '../http/browsers.ts'
import type { DeviceNames } from '../http/device-names.ts'
import type { Forward, ResponseHead } from '../http/exchange.ts'
import { connectionMembers, type Fields, fieldValues, isHopByHop } from '../http/fields.ts'
import { publicCookie, publicLinks, publicRefresh, publicUrl } from './origins.ts'

export interface ResponseFieldSettings extends DeviceNames, ResponseChanges {
  /** `Link`, `Refresh` and `Set-Cookie` name Postern where the device names itself, not `Location` and `Content-Location` alone. */
  readonly rewrite: boolean
  /** Names of the device's fields that the rate-limit fields replace, in lower case. */
  readonly replaced: readonly string[]
}

interface Projection extends ResponseHead {
  readonly settings: ResponseFieldSettings
}

/** By the fields of the device's head. For a remembered head, `HeadMemory` returns the same array. */
const projections = new WeakMap<Fields, Projection>()

/**
 * Fields about the device's own address and network, which do not apply to a client of Postern. `Alt-Svc` (RFC 7838) and its predecessor
 * `Alternate-Protocol` send the client past Postern. `NEL` (Network Error Logging) makes browsers report failed connections to Postern to a
 * server that the device names. Fields about the page pass: `Report-To`, `Server-Timing`, and `Strict-Transport-Security`, which protects
 * the users of the host and counts only with a certificate that the browser trusts.
 */
const OF_ITS_NETWORK: ReadonlySet<string> = new Set(['alt-svc', 'alternate-protocol', 'nel'])

/**
 * The head of the device's response for the client, its fields in the same order and letter case. It lacks the fields of the device's
 * connection and network, and those that the rate-limit fields replace (C16, C21, C22), which the exchange adds.
 * `upstream.response_headers` is applied.
 */
export function responseHead(
  { status, reason, fields: device, remembered }: DeviceHead,
  exchange: Forward,
  settings: ResponseFieldSettings,
): ResponseHead {
  const { replaced, rewrite, passes, added } = settings
  const known = remembered ? projections.get(device) : undefined
  if (known?.settings === settings) return known
  // The fields that `Connection` names belong to the connection, too (RFC 9110 §7.6.1).
  const options = fieldValues(device, 'connection').flatMap(connectionMembers)
  const fields: string[] = []
  let sameForAll = true
  for (let i = 0; i + 1 < device.length; i += 2) {
    const name = device[i] ?? ''
    const { lower, hops, adapt: adaptOf, always } = rules.get(name) ?? ruleOf(name)
    if (hops || replaced.includes(lower) || options.includes(lower)) continue
    if (passes !== undefined && !passes(lower)) continue
    // Such a response has no body and must not have a length (RFC 9110 §8.6).
    if (lower === 'content-length' && (status < 200 || status === 204)) continue
    const value = device[i + 1] ?? ''
    if (lower === 'set-cookie' && setsSessionCookie(value)) continue
    const adapt = always || rewrite ? adaptOf : undefined
    if (adapt !== undefined) sameForAll = false
    fields.push(name, adapt === undefined ? value : adapt(value, exchange, settings))
  }
  // An interim response only announces the final one, which gets the added fields (RFC 9110 §15.2). A 101 is final.
  if (added !== undefined && (status >= 200 || status === 101)) fields.push(...added)
  const said = added === undefined ? fields : device
  // A `Location` depends on the request, so a header with one is computed each time.
  const projection = { status, reason, settings, fields, said, reusable: remembered && sameForAll }
  if (projection.reusable) projections.set(device, projection)
  return projection
}

interface FieldRule {
  readonly lower: string
  /** The field belongs to one connection, or to the network of the device. */
  readonly hops: boolean
  /** How the value of the field is adapted to the client: `always`, or only with `rewrite`. */
  readonly adapt: typeof publicUrl | undefined
  readonly always: boolean
}

/** By the name as devices write it. There are few, and a look-up costs less than `toLowerCase`: `NameMemory` returns the same strings. */
const rules = new Map<string, FieldRule>()
const MOST_NAMES = 500
const LONGEST_NAME = 64

const ADAPTED: ReadonlyMap<string, typeof publicUrl> = new Map([
  ['location', publicUrl],
  ['content-location', publicUrl],
  ['link', publicLinks],
  ['refresh', publicRefresh],
  ['set-cookie', publicCookie],
])

function ruleOf(name: string): FieldRule {
  const lower = name.toLowerCase()
  const adapt = ADAPTED.get(lower)
  const hops = isHopByHop(lower) || OF_ITS_NETWORK.has(lower)
  const rule = { lower, hops, adapt, always: adapt === publicUrl }
  if (name.length <= LONGEST_NAME && rules.size < MOST_NAMES) rules.set(name, rule)
  return rule
}
