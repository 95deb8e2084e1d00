import { createClient, type RedisClientType } from '@redis/client'
import { freePort, listening, startChild, temporaryFolder, versionOf } from '../child.ts'
import { atEnd } from '../run-program.ts'

/** A client of the bench itself. */
export type Client = RedisClientType

/** A redis-server of our own: no persistence, no password, its folder is temporary. */
export interface Server {
  readonly port: number
  /** The connection of the bench: it seeds, revokes and reads INFO. */
  readonly client: Client
}

/** The version of the installed redis-server; undefined if there is none. */
export function serverVersion(): Promise<string | undefined> {
  return versionOf('redis-server', '--version', /v=(\S+)/)
}

/** Starts a redis-server on a free port. It ends with its figure. */
export async function startServer(core: number | undefined): Promise<Server> {
  const port = await freePort()
  const settings = { port, bind: '127.0.0.1', dir: await temporaryFolder(), save: '', appendonly: 'no' }
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
  const child = await startChild('redis-server', [...args, '--maxclients', '4000'], { core })
  await listening(port, child)
  const client: Client = createClient({ socket: { host: '127.0.0.1', port } })
  await client.connect()
  atEnd(() => client.destroy())
  return { port, client }
}

/** Where a sidecar counts requests. */
export type WindowsAt = 'local' | 'shared'

/** What `--set` says so that a sidecar shares its tokens with all of the same prefix, and its windows if they are `shared`. */
export function sharing({ port }: Pick<Server, 'port'>, prefix: string, windows: WindowsAt): string[] {
  return [`tokens.store=valkey://127.0.0.1:${port}`, `store.prefix=${prefix}`, `limits.store=${windows}`]
}
