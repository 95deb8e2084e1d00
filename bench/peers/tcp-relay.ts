import process from 'node:process'
import { startNodePeer } from './node-peer.ts'
import type { Peer } from './peer.ts'

/** Two sockets and no HTTP at all: the most that any proxy in Node could reach. */
export const tcpRelayPeer: Peer = {
  name: 'node tcp relay',
  does: 'not even HTTP',
  fast: true,
  version: async () => process.versions.node,
  start: (place) => startNodePeer('tcp-relay-server.ts', place),
}
