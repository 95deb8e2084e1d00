import { OWN_PATHS } from '../http/admission.ts'
import type { Exchange } from '../http/exchange.ts'
import { fieldValues } from '../http/fields.ts'
import { canonicalHost, coversHost, hostOf, normalizeAddress } from '../http/ip.ts'
import type { Refusal } from '../http/refusal.ts'
import { pathOf } from '../http/request-path.ts'
import { isRead } from '../http/scope.ts'
import type { OwnEndpointHandler } from '../oauth/token-endpoint.ts'
import type { ClassifyRules } from './classify.ts'

/** Where the port of `listen.redirect` leads. */
export interface RedirectTarget {
  /** The names of the certificate, in canonical form. */
  readonly names: () => readonly string[]
  /** The port of the public listener; undefined until it is open. */
  readonly port: () => number | undefined
}

const invalid = (description: string): Refusal => ({ kind: 'invalid-request', description })

/** A request with a secret is refused: with a redirect its program would never notice that it sends the secret in cleartext. */
const IN_CLEARTEXT = invalid(
  'This port speaks no TLS and only leads to https: what was sent to it may have been read on the way.',
)
const OTHER_HOST = invalid('This port leads only to the names of the certificate, and to IP addresses.')

/**
 * Leads a request without a secret to the same address over https, with 301 (RFC 6797 §7.2). The host has to be an IP address or a name of
 * the certificate: a cache in front could store a redirect to any other host, and lead other clients to an attacker (cache poisoning).
 */
export function createRedirect(
  { names, port }: RedirectTarget,
  settings: { readonly gate: Pick<ClassifyRules, 'revocationPath'> },
): OwnEndpointHandler {
  return async (exchange) => {
    const { head, classified } = exchange
    if (mayHoldSecret(exchange, settings.gate.revocationPath)) return IN_CLEARTEXT
    const named = URL.parse(`http://${classified.host}`)
    const host = named === null ? undefined : canonicalHost(hostOf(named))
    if (named === null || host === undefined) return OTHER_HOST
    if (normalizeAddress(host) === undefined && !coversHost(names(), host)) return OTHER_HOST
    // If the client names another port than the one that it reached, a NAT or container maps the ports. Then https has its usual port.
    const isMapped = Number(named.port === '' ? 80 : named.port) !== head.localPort
    const usual = new URL(`https://${named.hostname}:${isMapped ? 443 : (port() ?? 443)}`)
    const fields = ['Location', `${usual.origin}${classified.target}`, 'Cache-Control', 'no-store']
    return { response: { status: 301, fields, body: '' } }
  }
}

/**
 * Whether a request may hold a password, a token or other input. A GET or HEAD of a page without credentials and body does not. A cookie
 * does not count: a browser adds each one without `Secure` by itself, and its user only typed an address.
 */
function mayHoldSecret({ head, classified }: Exchange, revocationPath: string | undefined): boolean {
  const { method, upgrade, fields } = head
  const path = pathOf(classified.target)
  const isOAuth = path === OWN_PATHS.token || path === revocationPath
  const hasBody = classified.framing !== null && classified.framing !== 0
  const hasCredentials = CREDENTIALS.some((name) => fieldValues(fields, name).length > 0)
  return !isRead(method) || hasBody || upgrade || hasCredentials || isOAuth
}

/** The fields in which programs send a password or a token (RFC 9110 §11). */
const CREDENTIALS = ['authorization', 'proxy-authorization']
