import type { Child } from '../child.ts'

/** A program that forwards requests to the device, as well configured as it can be. */
export interface Peer {
  readonly name: string
  /** What it does besides forwarding, for the table. */
  readonly does: string
  /** So fast that autocannon would be the bottleneck: loaded with wrk where that is installed. */
  readonly fast: boolean
  /** Undefined where it is not installed. */
  version(): Promise<string | undefined>
  start(place: Place): Promise<RunningPeer>
}

/** Where a peer runs. */
export interface Place {
  readonly devicePort: number
  /** The core it is pinned to, where pinning is possible. */
  readonly core: number | undefined
}

export interface RunningPeer {
  readonly url: string
  /** The processes that do the work. */
  readonly children: readonly Child[]
  /** What the load must send to be let through. */
  readonly headers: Readonly<Record<string, string>>
}

/** The token that peers which check one know; the others are sent it as well, so that all read the same bytes. */
export const PEER_TOKEN = 'kUq3cM9J2mWc1v3zQ8rX0yN5tB7aD4eF6gH8iK0lO2P'

export const PEER_HEADERS: Readonly<Record<string, string>> = { Authorization: `Bearer ${PEER_TOKEN}` }
