import { startNodePeer } from './node-peer.ts'
import { packageVersion } from './package-version.ts'
import { PEER_TOKEN, type Peer } from './peer.ts'

/** Fastify with its proxy, rate-limit and bearer plugins: our job, put together from parts that are well known. */
export const fastifyPeer: Peer = {
  name: 'fastify',
  does: 'http-proxy, rate-limit, bearer-auth',
  fast: false,
  version: () => packageVersion('fastify'),
  start: (place) => startNodePeer('fastify-server.ts', place, [PEER_TOKEN]),
}
