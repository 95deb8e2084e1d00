import type { IncomingMessage } from 'node:http'
import { type Answer, errorAnswer, isRead } from './answer.ts'

/**
 * Refuses a request that a page of another site causes (CSRF); undefined if a page of this listener sent it. Browsers send
 * `Sec-Fetch-Site` over TLS and to loopback, and `Origin` with every POST. `Origin` is compared with `Host` without the scheme,
 * because a proxy in front may terminate TLS; `X-Forwarded-*` is not believed. A request that only reads may have neither field. Other
 * sites cannot read the response, but could occupy all streams.
 */
export function refuseCrossOrigin(req: IncomingMessage): Answer | undefined {
  const [site, origin, host] = ['sec-fetch-site', 'origin', 'host'].map((name) => single(req, name))
  if (isFromHere(site, origin, host ?? '', isRead(req))) return undefined
  const remedy =
    'Open the page and use it there. A proxy in front has to pass Host unchanged. Clients without a page send Origin with the address in Host.'
  return errorAnswer(403, 'cross_origin', `The request does not come from a page of this address. ${remedy}`)
}

function isFromHere(
  site: string | undefined,
  origin: string | undefined,
  host: string,
  onlyReads: boolean,
): boolean {
  // `none`: the user typed the address.
  if (site !== undefined) return site === 'same-origin' || (onlyReads && site === 'none')
  return origin === undefined ? onlyReads : isSameHost(origin, host)
}

/** The value of a field; the empty text if it is repeated, which equals nothing that is looked for. */
function single(req: IncomingMessage, name: string): string | undefined {
  const values = req.headersDistinct[name]
  return values === undefined || values.length === 1 ? values?.[0] : ''
}

/** `null`, which sandboxed frames and some redirects send, is no URL, so it equals no host. */
function isSameHost(origin: string, host: string): boolean {
  const from = URL.parse(origin)
  if (from === null || !/^https?:$/.test(from.protocol) || from.host === '' || /[/?#@\\\s]/.test(host))
    return false
  // The scheme decides which port may be left out.
  return URL.parse(`${from.protocol}//${host}`)?.host === from.host
}
