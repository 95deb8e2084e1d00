import { tokenHeaders } from '../../config/auth-fields.ts'
import { fits } from '../../config/name-pattern.ts'
import { responseChanges } from '../../config/response-header-field.ts'
import { type ServiceConfig, servicesOf } from '../../config/upstream-fields.ts'
import type { Malformed } from '../../device/connections.ts'
import { LONGEST_PAGE } from '../../device/own-request.ts'
import { createRouter } from '../../forward/routes.ts'
import { type Fields, fieldNamesIn } from '../../http/fields.ts'
import type { UpstreamFailure } from '../../http/refusal.ts'
import { KINDS } from '../../overview/alarm-kinds.ts'
import type { Clock } from '../../system/clock.ts'
import { SetupError } from '../../system/setup-error.ts'
import type { Warning } from './finding.ts'
import type { Asked } from './part.ts'

/** A service of the device. */
export interface Service {
  readonly service: ServiceConfig
  readonly key: string
  readonly clock: Clock
}

/** As long as one request may take in all: to connect, to wait for the head of the response, and to read a page. */
export function lookBound({ service, clock }: Service): { readonly clock: Clock; readonly time: number } {
  return { clock, time: service.connectTimeout + service.responseTimeout + LONGEST_PAGE }
}

/** All services. `of`: the end of a check's name for a route. */
export function allServices({ config: { upstream }, clock }: Asked) {
  return servicesOf(upstream).map(({ path, service }) => {
    const [, , route] = path
    return { service, key: path.join('.'), clock, of: route === undefined ? '' : ` of ${route}` }
  })
}

/** The service that gets requests for this path. Throws `SetupError` if the text is no path, or belongs to no single service. */
export function serviceAt({ config: { upstream }, clock }: Asked, path: string, argument: string): Service {
  const [main, ...routes] = servicesOf(upstream).map((each) => [each.path[2] ?? '', each] as const)
  const isPath = /^\/[!-~]*$/.test(path) && !path.includes('#')
  const named = isPath && main && createRouter(main[1], new Map(routes))(path)
  if (!named) throw new SetupError(`${argument} must be a path of one service of the device, such as /upload`)
  return { service: named.service, key: named.path.join('.'), clock }
}

export function pageOf({ health }: ServiceConfig): string {
  return health.path ?? '/'
}

/** A text about the fields of a response that clients do not get, or get with another value; empty if there are none. */
export function withoutText(fields: Fields, { responseHeaders, auth }: ServiceConfig): string {
  const { passes, added = [] } = responseChanges(responseHeaders, tokenHeaders(auth))
  if (passes === undefined) return ''
  const isSet = fits([...fieldNamesIn(added)])
  const changed = [...fieldNamesIn(fields)].filter((name) => !passes(name))
  const left = changed.filter((name) => !isSet(name))
  const other = changed.filter(isSet)
  return [
    left.length === 0 ? '' : `; clients do not get ${left.join(', ')}`,
    other.length === 0 ? '' : `; clients get another ${other.join(', ')}`,
  ].join('')
}

/** The warning about a malformed response, for all checks. */
export function malformedWarning(found: string, { fault, bytes }: Malformed, key: string): Warning {
  return {
    warning: `${found} with malformed HTTP: ${fault}: "${bytes}"`,
    meaning: KINDS.MalformedHttp.meaning,
    remedy: `set ${key}.parser: tolerant, which saves the first try, and look for a new firmware`,
    line: 'parser: tolerant',
  }
}

const CLOSES =
  'the device closes the connection instead of answering: correct KEY.url, or look at the log of the device'
const NOT_HTTP =
  'KEY.url leads to something other than a web server; for sloppy firmware see deploy/old-firmware.md'

/** The remedies for a device that does not answer. `KEY` stands for the key of the service. */
const HINTS: Readonly<Partial<Record<UpstreamFailure, string>>> = {
  dns_error: 'the host name in KEY.url has no address: correct it, or write the IP address',
  dns_timeout:
    'the host name in KEY.url takes longer to resolve than KEY.connect_timeout: look at the DNS servers of this machine (/etc/resolv.conf), or write the IP address',
  connection_refused: 'nothing listens there: switch the device on, or correct host and port in KEY.url',
  destination_unavailable: 'no route to the device: check the network of this machine, or correct KEY.url',
  connection_timeout: 'switch the device on, correct KEY.url, or look for a firewall between the two',
  http_response_timeout:
    'raise KEY.response_timeout, or set KEY.health.path to a page that costs the device less',
  http_response_header_section_size: NOT_HTTP,
  http_protocol_error: NOT_HTTP,
  tls_protocol_error:
    'the TLS handshake fails: look at the TLS versions and ciphers that the device offers, or correct KEY.url',
  tls_certificate_error: 'compare the certificate of the device with KEY.tls',
}

export function failureHint(failure: UpstreamFailure, key: string): string {
  return (HINTS[failure] ?? CLOSES).replaceAll('KEY', key)
}
