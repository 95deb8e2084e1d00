import { UNIX_PEER } from '../gate/client-address.ts'
import { normalizeAddress, prefix64 } from '../http/ip.ts'
import type { Revocation } from '../tokens/revocation.ts'

/** What an operator can revoke: everything, the grants of one client, or one grant. */
export type OperatorRevocation = Extract<
  Revocation,
  { readonly all: true } | { readonly client: string } | { readonly grant: string }
>

/** Parses the body of a `revoke` command. Undefined unless it names exactly one of the three, with a valid address. */
export function readRevocation(text: string): OperatorRevocation | undefined {
  const value = parse(text)
  if (value === null || typeof value !== 'object' || Object.keys(value).length !== 1) return undefined
  if ('all' in value && value.all === true) return { all: true }
  if ('grant' in value && typeof value.grant === 'string') return { grant: value.grant }
  if (!('client' in value) || typeof value.client !== 'string') return undefined
  const client = clientKeyOf(value.client)
  return client === undefined ? undefined : { client }
}

/**
 * The key of an address in the rate limits (C17). IPv4 and IPv4-mapped: the IPv4 address. IPv6: its /64. `unix`: itself.
 * Undefined for anything else, such as a range other than a /64.
 */
export function clientKeyOf(text: string): string | undefined {
  if (text === UNIX_PEER) return UNIX_PEER
  const address = normalizeAddress(text.replace(/(:.*)\/64$/, '$1'))
  return address === undefined ? undefined : prefix64(address)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
