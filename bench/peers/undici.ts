import { readFile } from 'node:fs/promises'
import { startNodePeer } from './node-peer.ts'
import type { Peer } from './peer.ts'

/** `node:http` in front, undici `Pool.dispatch` behind, nothing between: the floor under our own way of forwarding. */
export const undiciPeer: Peer = {
  name: 'node:http-undici',
  does: 'nothing else',
  async version() {
    const manifest = new URL('../../node_modules/undici/package.json', import.meta.url)
    return (JSON.parse(await readFile(manifest, 'utf8')) as { version: string }).version // of npm, so it has one
  },
  start: (place) => startNodePeer('undici-server.ts', place),
}
