import { startNodePeer } from './node-peer.ts'
import { packageVersion } from './package-version.ts'
import type { Peer } from './peer.ts'

/** `fast-proxy` with undici behind it, which its manual recommends. */
export const fastProxyPeer: Peer = {
  name: 'fast-proxy',
  does: 'nothing else',
  fast: false,
  version: () => packageVersion('fast-proxy'),
  start: (place) => startNodePeer('fast-proxy-server.ts', place),
}
