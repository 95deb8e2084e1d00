import type { IncomingMessage } from 'node:http'
import { isFromHere } from '../http/browsers.ts'
import { isRead } from '../http/scope.ts'
import { type AdminResponse, errorResponse } from './admin-response.ts'

/**
 * Refuses a request that a page of another site causes (CSRF); undefined if a page of this listener sent the request. Ignores
 * `X-Forwarded-*`. A request that only reads may lack both `Origin` and `Sec-Fetch-Site`. Reads are guarded, too: another site could not
 * see the response, but could occupy all streams.
 */
export function refuseCrossOrigin(req: IncomingMessage): AdminResponse | undefined {
  const valuesOf = (name: string): readonly string[] => req.headersDistinct[name] ?? []
  const [host = '', ...further] = valuesOf('host')
  const reads = isRead(req.method)
  // Only a `TLSSocket` has `encrypted`.
  const scheme = 'encrypted' in req.socket ? 'https://' : ''
  const address = (): string => (further.length === 0 ? scheme + host : '')
  if (isFromHere(valuesOf, address, { typed: reads, silent: reads })) return undefined
  const remedy =
    'Open the page and use it there. A proxy in front has to pass Host unchanged. Clients without a page send Origin with the address in Host.'
  return errorResponse(
    403,
    'cross_origin',
    `The request does not come from a page of this address. ${remedy}`,
  )
}
