import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { freePort, listening, startChild } from '../child.ts'
import type { Program } from '../program.ts'
import { PEER_HEADERS, type Place, type RunningPeer } from './peer.ts'

/** Starts one of the `*-server.ts` beside this file, whose arguments are its own port, the device's, and `more`. */
export async function startNodePeer(
  file: string,
  { devicePort, core }: Place,
  more: readonly string[] = [],
  { tuning, env }: Pick<Program, 'tuning' | 'env'> = { tuning: [], env: { NODE_ENV: 'production' } },
): Promise<RunningPeer> {
  const port = await freePort()
  const program = fileURLToPath(new URL(file, import.meta.url))
  const child = await startChild(
    process.execPath,
    [...tuning, program, String(port), String(devicePort), ...more],
    {
      core,
      env,
    },
  )
  await listening(port, child)
  return { url: `http://127.0.0.1:${port}`, children: [child], headers: PEER_HEADERS }
}
