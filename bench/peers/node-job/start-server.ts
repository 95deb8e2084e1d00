import { join } from 'node:path'
import type { Child } from '../../child.ts'
import { PASSWORD } from '../../sidecar.ts'
import type { JobSettings } from '../job.ts'
import { startNode } from '../node-peers.ts'
import type { Place } from '../peer.ts'
import type { ServerSettings } from './server-settings.ts'
import { PASSWORD_DIGEST, passwordDigest } from './tokens.ts'

/** Starts a server of this folder. Its standard output goes to `log` in its state folder. */
export async function startServer(
  file: string,
  { devicePort, core }: Place,
  { limits, pair, state }: JobSettings,
): Promise<{ readonly port: number; readonly child: Child }> {
  const args = (port: number): readonly string[] => {
    const settings: ServerSettings = { port, devicePort, limits, pair, state }
    return [JSON.stringify(settings)]
  }
  const env = { NODE_ENV: 'production', [PASSWORD_DIGEST]: await passwordDigest(PASSWORD) }
  return startNode(`node-job/${file}`, args, { core, env, outputTo: join(state, 'log') })
}
