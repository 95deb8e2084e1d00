import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { freePort, listening, startChild, temporaryFolder } from '../child.ts'
import { type Capability, MEANINGS } from '../floor/capabilities.ts'
import type { Program } from '../program.ts'
import { PEER_HEADERS, type Peer } from './peer.ts'

const SERVER = fileURLToPath(new URL('../floor/floor-server.ts', import.meta.url))

/**
 * The floor (`bench/floor`), with the Node flags of `program`.
 * @param last the last of its capabilities, after which it is named; undefined for none
 */
export function floorPeer(tls: boolean, last: Capability | undefined, program: Program): Peer {
  return {
    name: last === undefined ? 'floor' : `+ ${last}`,
    does: last === undefined ? 'token, window, fields, connections to the device' : MEANINGS[last],
    version: async () => process.versions.node,
    async start({ devicePort, core }) {
      const port = await freePort()
      const folder = await temporaryFolder()
      const args = [String(port), String(devicePort), last ?? '', ...(tls ? [folder] : [])]
      const options = { core, env: program.env, outputTo: join(folder, 'log') }
      const child = await startChild(process.execPath, [...program.tuning, SERVER, ...args], options)
      await listening(port, child)
      const url = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`
      return { url, children: [child], headers: PEER_HEADERS }
    },
  }
}
