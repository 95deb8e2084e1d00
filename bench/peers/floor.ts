import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { freePort, listening, startChild, temporaryFolder } from '../child.ts'
import { type Capability, MEANINGS } from '../floor/capabilities.ts'
import type { Program } from '../program.ts'
import { startNodePeer, tcpRelayPeer } from './node-peers.ts'
import { PEER_HEADERS, type Peer } from './peer.ts'

const SERVER = fileURLToPath(new URL('../floor/floor-server.ts', import.meta.url))

export interface FloorOptions {
  readonly tls: boolean
  readonly capabilities: readonly Capability[]
  /** The floor runs with the same Node flags. */
  readonly program: Program
}

/** The floor (`bench/floor`), named after its last capability. */
export function floorPeer({ tls, capabilities, program }: FloorOptions): Peer {
  const last = capabilities.at(-1)
  return {
    name: last === undefined ? 'floor' : `+ ${last}`,
    does: last === undefined ? 'token, window, fields, connections to the device' : MEANINGS[last],
    fast: true,
    version: async () => process.versions.node,
    async start({ devicePort, core }) {
      const port = await freePort()
      const folder = await temporaryFolder()
      const args = [String(port), String(devicePort), capabilities.join(','), ...(tls ? [folder] : [])]
      const child = await startChild(process.execPath, [...program.tuning, SERVER, ...args], {
        core,
        env: program.env,
        outputTo: join(folder, 'log'),
      })
      await listening(port, child)
      return {
        url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
        children: [child],
        headers: PEER_HEADERS,
      }
    },
  }
}

/** The bare relay with the Node flags of `program`. */
export function relayPeer(program: Program): Peer {
  const start: Peer['start'] = (place) => startNodePeer('tcp-relay-server.ts', place, [], program)
  return { ...tcpRelayPeer, name: 'relay', start }
}
