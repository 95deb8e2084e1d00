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

/**
 * Whether a page of this address sent the request, or the user did. Browsers send `Sec-Fetch-Site` over TLS and to loopback, and compare
 * scheme, host and port for it; `Origin` they send with every POST and WebSocket. A value is empty if its field is repeated.
 *
 * @param address host and port of this listener, behind `https://` if the client is known to use TLS
 * @param typed whether a request counts that no page caused: an address that was typed, a bookmark
 * @param silent whether a request without either field counts, such as one of a program
 */
export function isFromHere(
  site: string | undefined,
  origin: string | undefined,
  address: string,
  typed: boolean,
  silent: boolean,
): boolean {
  if (site !== undefined) return site === 'same-origin' || (typed && site === 'none')
  return origin === undefined ? silent : isSameHost(origin, address)
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
