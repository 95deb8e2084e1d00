import { startNodePeer } from './node-peer.ts'
import { packageVersion } from './package-version.ts'
import type { Peer } from './peer.ts'

/** Bare `http-proxy-3` as it comes: forwards, and nothing else; a connection to the device for each request. */
export const httpProxy3Peer: Peer = {
  name: 'http-proxy-3',
  does: 'nothing else, no agent',
  fast: false,
  version: () => packageVersion('http-proxy-3'),
  start: (place) => startNodePeer('http-proxy-3-server.ts', place),
}

/** The same with a keep-alive agent, which is the best that can be done for it. */
export const httpProxy3KeepAlivePeer: Peer = {
  name: 'http-proxy-3-keep-alive',
  does: 'nothing else',
  fast: false,
  version: () => packageVersion('http-proxy-3'),
  start: (place) => startNodePeer('http-proxy-3-server.ts', place, ['keep-alive']),
}
