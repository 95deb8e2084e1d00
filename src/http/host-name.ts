import { normalizeAddress } from './ip.ts'

/** The form of a DNS name in a certificate. `*` may stand for the first label (RFC 9525 §6.3). */
const DNS_NAME = /^(?:\*\.)?(?:[a-z\d_](?:[a-z\d_-]{0,61}[a-z\d_])?\.)*[a-z_](?:[a-z\d_-]{0,61}[a-z\d_])?$/

/**
 * The canonical form of a DNS name or an IP address, in which names are compared; undefined for anything else. A zone
 * (`fe80::1%eth0`) is no part of an address in a certificate.
 */
export function canonicalName(given: string): string | undefined {
  if (given.includes('%')) return undefined
  const name = given.toLowerCase()
  return normalizeAddress(name) ?? (name.length <= 253 && DNS_NAME.test(name) ? name : undefined)
}
