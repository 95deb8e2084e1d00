import type { Exchange } from './exchange.ts'
import { fieldValues } from './fields.ts'

/** The parts of a request that say by which name the client reached Postern. */
export type Addressed = Pick<Exchange, 'head' | 'client' | 'classified'>

/** The origin that the client used. A trusted proxy in front names it; otherwise it is this request's. */
export function publicOrigin({ head, client, classified }: Addressed): string | undefined {
  const reported = (name: string): string | undefined =>
    client.peerTrusted ? fieldValues(head.fields, name)[0] : undefined
  const host = reported('x-forwarded-host') ?? classified.host
  if (host === '') return undefined
  const proto = reported('x-forwarded-proto')?.toLowerCase()
  const scheme = proto === 'http' || proto === 'https' ? proto : head.secure ? 'https' : 'http'
  return `${scheme}://${host}`
}

/** Requests that no page of this address sent, and that pass all the same. */
interface OtherSenders {
  /** The user caused the request: an address that was typed, a bookmark. */
  readonly typed: boolean
  /** The request does not say who caused it, such as one of a program. */
  readonly silent: boolean
}

/**
 * Whether a page of this address sent the request, or one of the `others` did. Browsers send `Sec-Fetch-Site` over TLS and to loopback, and
 * compare scheme, host and port for it; `Origin` they send with every POST and WebSocket.
 *
 * @param valuesOf the values of a field, by its name in lower case
 * @param address host and port of this listener, behind `https://` if the client is known to use TLS; rarely needed
 */
export function isFromHere(
  valuesOf: (name: string) => readonly string[],
  address: () => string,
  others: OtherSenders,
): boolean {
  const site = single(valuesOf('sec-fetch-site'))
  if (site !== undefined) return site === 'same-origin' || (others.typed && site === 'none')
  const origin = single(valuesOf('origin'))
  return origin === undefined ? others.silent : isSameHost(origin, address())
}

/** The value of a field; the empty text if it is repeated, which equals nothing that is looked for. */
function single(values: readonly string[]): string | undefined {
  return values.length > 1 ? '' : values[0]
}

/**
 * Without TLS here, the scheme is not compared, because a proxy in front may terminate it. `null`, which sandboxed frames and some
 * redirects send, is no URL, so it equals no host.
 */
function isSameHost(origin: string, address: string): boolean {
  const from = URL.parse(origin)
  const [, scheme = '', host = ''] = /^(?:(https?:)\/\/)?(.*)$/s.exec(address) ?? []
  if (from === null || !/^https?:$/.test(from.protocol) || from.host === '' || /[/?#@\\\s]/.test(host))
    return false
  // A page that came over cleartext may be an attacker's on the way (RFC 6454 §3.2).
  if (scheme === 'https:' && from.protocol !== scheme) return false
  // The scheme decides which port may be left out.
  return URL.parse(`${from.protocol}//${host}`)?.host === from.host
}
