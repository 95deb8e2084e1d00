import { startNodePeer } from './node-peer.ts'
import { packageVersion } from './package-version.ts'
import type { Peer } from './peer.ts'

/** `node:http` in front, undici `Pool.dispatch` behind, nothing between: what forwarding costs with parts of others alone. */
export const undiciPeer: Peer = {
  name: 'node:http-undici',
  does: 'nothing else',
  fast: false,
  version: () => packageVersion('undici'),
  start: (place) => startNodePeer('undici-server.ts', place),
}
