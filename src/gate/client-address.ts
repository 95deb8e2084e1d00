import type { Client } from '../http/admission.ts'
import { listMembers } from '../http/fields.ts'
import { type AdmitsAddress, type Cidr, matchesAny, normalizeAddress, prefix64 } from '../http/ip.ts'

/** The address of a peer on a Unix socket. The file mode of the socket decides which processes may connect. */
export const UNIX_PEER = 'unix'

/** How many peers are remembered, so that an address is parsed once for many requests. */
const REMEMBERED_PEERS = 4096

/** Determines the client of a request from its peer and the values of its `X-Forwarded-For`. */
export type ClientOf = (peer: string, forwardedFor: readonly string[]) => Client

/**
 * `X-Forwarded-For` counts only from trusted proxies. It is read from the right, because each proxy appends the address of its peer. The
 * client is the first address that is not a trusted proxy. The client itself may have written all addresses left of that one, so they are
 * ignored.
 */
export function createClientAddress(
  trustedProxies: readonly Cidr[],
  unixTrusted = false,
  admits: AdmitsAddress = () => true,
): ClientOf {
  const remembered = new Map<string, Client>()
  const isProxy = (address: string): boolean => matchesAny(address, trustedProxies)

  const clientAt = (address: string, peerTrusted: boolean, hops: number): Client => ({
    address,
    key: prefix64(address),
    peerTrusted,
    hops,
    admitted: address === UNIX_PEER || admits(address),
  })

  function peerOf(peer: string): Client {
    const known = remembered.get(peer)
    if (known !== undefined) return known
    const address = normalizeAddress(peer)
    const client =
      address === undefined ? clientAt(UNIX_PEER, unixTrusted, 0) : clientAt(address, isProxy(address), 0)
    if (remembered.size >= REMEMBERED_PEERS) remembered.clear()
    remembered.set(peer, client)
    return client
  }

  return (peer, forwardedFor) => {
    const direct = peerOf(peer)
    if (!direct.peerTrusted || forwardedFor.length === 0) return direct
    let client = direct.address
    let hops = 0
    for (const hop of listMembers(forwardedFor).reverse()) {
      const address = normalizeAddress(withoutPort(hop))
      if (address === undefined) break
      client = address
      if (!isProxy(address)) break
      hops += 1
    }
    return clientAt(client, true, hops)
  }
}

/** Some proxies append the port: `192.0.2.1:4711` or `[2001:db8::1]:4711`. */
function withoutPort(hop: string): string {
  return /^\[(.*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop
}
