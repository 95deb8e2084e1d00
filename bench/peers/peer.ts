import type { Child } from '../child.ts'

/** A program that forwards requests to the device, in its fastest configuration. */
export interface Peer {
  readonly name: string
  /** What it does besides forwarding, for the table. */
  readonly does: string
  /** Undefined if it is not installed. */
  version(): Promise<string | undefined>
  start(place: Place): Promise<RunningPeer>
}

/** Core and device of a peer. */
export interface Place {
  readonly devicePort: number
  /** The core of the peer; undefined if processes cannot be pinned. */
  readonly core: number | undefined
}

export interface RunningPeer {
  readonly url: string
  /** The processes that do the work. */
  readonly children: readonly Child[]
  /** URL of the admin listener of Postern. */
  readonly admin?: string
  /** Fields that the load must send to be admitted. */
  readonly headers: Readonly<Record<string, string>>
}

/** The token of all peers. Peers that check no token receive it too, so that all read the same bytes. */
export const PEER_TOKEN = 'kUq3cM9J2mWc1v3zQ8rX0yN5tB7aD4eF6gH8iK0lO2P'

export const PEER_HEADERS: Readonly<Record<string, string>> = { Authorization: `Bearer ${PEER_TOKEN}` }
