import type { Lab } from '../lab.ts'
import { NO_LIMIT } from '../peers/postern.ts'
import { type RunningSidecar, startSidecar } from '../sidecar.ts'
import type { Server } from './server.ts'

/** Where a sidecar counts requests. */
export type WindowsAt = 'local' | 'shared'

/** What `--set` says so that a sidecar shares its tokens, and its windows if they are `shared`. */
export function sharing({ port }: Pick<Server, 'port'>, prefix: string, windows: WindowsAt): string[] {
  // A busy machine is no failure of the store.
  const store = [`tokens.store=valkey://127.0.0.1:${port}`, `store.prefix=${prefix}`, 'store.timeout=30s']
  return [...store, `limits.store=${windows}`]
}

/** No request is refused, and a token can be revoked. */
const OPEN = [
  `limits.api.requests=${NO_LIMIT}`,
  `limits.oauth.requests=${NO_LIMIT}`,
  'oauth.revocation_path=/oauth/revoke',
]

/** Starts a sidecar that shares with all others of the same prefix. */
export function startSharing(
  lab: Pick<Lab, 'device' | 'program'>,
  server: Server,
  { prefix, windows, core }: { prefix: string; windows: WindowsAt; core: number | undefined },
): Promise<RunningSidecar> {
  const device = `http://127.0.0.1:${lab.device.port}`
  const set = [...OPEN, ...sharing(server, prefix, windows)]
  return startSidecar({ device, tls: false, set, core, program: lab.program })
}
