import { readFile } from 'node:fs/promises'
import { startNodePeer } from './node-peer.ts'
import type { Peer } from './peer.ts'

/** Bare `http-proxy-3` as it comes: forwards, and nothing else; a connection to the device for each request. */
export const httpProxy3Peer: Peer = {
  name: 'http-proxy-3',
  does: 'nothing else, no agent',
  version,
  start: (place) => startNodePeer('http-proxy-3-server.ts', place),
}

/** The same with a keep-alive agent, which is the best that can be done for it. */
export const httpProxy3KeepAlivePeer: Peer = {
  name: 'http-proxy-3-keep-alive',
  does: 'nothing else',
  version,
  start: (place) => startNodePeer('http-proxy-3-server.ts', place, ['keep-alive']),
}

async function version(): Promise<string> {
  const manifest = new URL('../../node_modules/http-proxy-3/package.json', import.meta.url)
  return (JSON.parse(await readFile(manifest, 'utf8')) as { version: string }).version // of npm, so it has one
}
