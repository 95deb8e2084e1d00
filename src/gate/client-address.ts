import { listMembers } from '../http/fields.ts'
import { type Cidr, matchesAny, normalizeAddress, prefix64 } from '../http/ip.ts'

/** Who a request comes from. */
export interface Client {
  /** The address in canonical text; `unix` for a peer that has none. */
  readonly address: string
  /** What the limits count by: an IPv4 address, or the /64 of an IPv6 one (C17). */
  readonly key: string
  /** Whether the peer itself may speak for others. */
  readonly peerTrusted: boolean
}

/** A peer over a Unix socket has no address; the file mode of the socket decides who it is. */
export const UNIX_PEER = 'unix'

/** Peers remembered between requests, so that an address is parsed once for a burst of requests. */
const REMEMBERED_PEERS = 4096

/** Tells the client of a request by its peer and the values of its `X-Forwarded-For`. */
export type ClientOf = (peer: string, forwardedFor: readonly string[]) => Client

/**
 * `X-Forwarded-For` counts only from trusted proxies and is read from the right: each hop vouches for the one before
 * it, and the first address that nobody trusted vouches for is the client. What stands left of it, the client wrote.
 */
export function createClientAddress(trustedProxies: readonly Cidr[], unixTrusted = false): ClientOf {
  const remembered = new Map<string, Client>()

  function peerOf(peer: string): Client {
    const known = remembered.get(peer)
    if (known !== undefined) return known
    const address = normalizeAddress(peer)
    const client: Client =
      address === undefined
        ? { address: UNIX_PEER, key: UNIX_PEER, peerTrusted: unixTrusted }
        : { address, key: prefix64(address), peerTrusted: matchesAny(address, trustedProxies) }
    if (remembered.size >= REMEMBERED_PEERS) remembered.clear()
    remembered.set(peer, client)
    return client
  }

  return (peer, forwardedFor) => {
    const direct = peerOf(peer)
    if (!direct.peerTrusted || forwardedFor.length === 0) return direct
    let client = direct.address
    for (const hop of listMembers(forwardedFor).reverse()) {
      const address = normalizeAddress(withoutPort(hop))
      if (address === undefined) break
      client = address
      if (!matchesAny(address, trustedProxies)) break
    }
    return { address: client, key: prefix64(client), peerTrusted: true }
  }
}

/** Some proxies write `192.0.2.1:4711` or `[2001:db8::1]:4711`. */
function withoutPort(hop: string): string {
  return /^\[(.*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop
}
