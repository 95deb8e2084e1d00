import { SetupError } from '../system/setup-error.ts'
import { CLOSED, type Connection, type StoreSettings } from './connection.ts'
import { connectToPrimary, type ServerFacts } from './open-session.ts'
import { listOf, ServerReplyError, type StoreReply, unavailable, valueIn } from './shared-store.ts'

/** What the command `check` reports about the server. */
export interface ServerReport extends ServerFacts {
  readonly forbidden: readonly string[]
  /** Undefined if the user may not read the settings. */
  readonly settings: ServerSettings | undefined
  /** The number of connected replicas; undefined if the user may not ask for it. */
  readonly replicas: number | undefined
  readonly password: { readonly salt: string; readonly fingerprint: string } | undefined
}

interface ServerSettings {
  /** Whether the server removes keys when its memory is full. */
  readonly evicts: boolean
  readonly policy: string
  readonly persistent: boolean
}

/**
 * Connects to the shared store once and examines it, without a lasting change. Resolves with the facts alone if the server is older than
 * version 7. Rejects with a `SetupError` if a file cannot be read, otherwise with `StoreUnavailable`.
 */
export async function inspectServer(settings: StoreSettings): Promise<ServerReport> {
  const { prefix } = settings
  const state = `{${prefix}}:state`
  const life = new AbortController()
  try {
    const { connection, facts } = await connectToPrimary(settings, life.signal)
    if (Number.parseInt(facts.version, 10) < 7)
      return { ...facts, forbidden: [], settings: undefined, replicas: undefined, password: undefined }
    return {
      ...facts,
      forbidden: await forbiddenCommands(connection.send, prefix),
      settings: settingsIn(await allowed(connection, ['CONFIG', 'GET', ...SETTINGS])),
      replicas: replicasIn(await allowed(connection, ['INFO', 'replication'])),
      password: passwordIn(await allowed(connection, ['HMGET', state, 'salt', 'fingerprint'])),
    }
  } catch (error) {
    if (error instanceof SetupError) throw error
    throw unavailable('connect', error)
  } finally {
    life.abort(CLOSED)
  }
}

const SETTINGS = ['maxmemory', 'maxmemory-policy', 'save', 'appendonly']

/** The reply; undefined if the user may not ask, or the server does not know the command, as many hosted ones do not. */
function allowed(connection: Connection, question: readonly string[]): Promise<StoreReply | undefined> {
  return connection.send(question).catch((error: unknown) => {
    if (error instanceof ServerReplyError) return undefined
    throw error
  })
}

function settingsIn(reply: StoreReply | undefined): ServerSettings | undefined {
  const [memory, policy, save, log] = SETTINGS.map((name) => valueIn(reply, name))
  if (policy === undefined || save === undefined) return undefined
  return {
    evicts: memory !== '0' && policy !== 'noeviction',
    policy,
    persistent: save !== '' || log === 'yes',
  }
}

function passwordIn(reply: StoreReply | undefined): ServerReport['password'] {
  const [salt, fingerprint] = listOf(reply)
  return typeof salt === 'string' && typeof fingerprint === 'string' ? { salt, fingerprint } : undefined
}

function replicasIn(reply: StoreReply | undefined): number | undefined {
  const [, count] = /^connected_slaves:(\d+)/m.exec(String(reply)) ?? []
  return count === undefined ? undefined : Number(count)
}

/** Every command that Postern sends or runs in a script, with the fewest arguments that are valid; `KEY` stands for a key. */
export const COMMANDS: readonly string[] = [
  'DEL KEY',
  'EVAL x 0',
  'EVALSHA x 0',
  'GET KEY',
  'HDEL KEY a',
  'HGET KEY a',
  'HGETALL KEY',
  'HMGET KEY a',
  'HSET KEY a 1',
  'INCRBY KEY 1',
  'PEXPIRE KEY 1',
  'PEXPIREAT KEY 1',
  'PTTL KEY',
  'SET KEY 1',
  'TIME',
  'UNLINK KEY',
  'WAIT 1 1',
  'XADD KEY * a 1',
  'XREAD STREAMS KEY 0',
  'XREVRANGE KEY + -',
  'ZADD KEY 1 a',
  'ZCARD KEY',
  'ZRANGE KEY 0 1',
  'ZRANGEBYSCORE KEY 0 1',
  'ZREM KEY a',
  'ZREMRANGEBYSCORE KEY 0 1',
  'ZSCORE KEY a',
]

/**
 * Lists the commands that the user may not run (`redis.acl_check_cmd`, since version 7). If there are none, writes and deletes a key, which
 * fails if the server is full or accepts no writes.
 */
const PROBE = `
  local forbidden = {}
  for _, line in ipairs(ARGV) do
    local call = {}
    for word in string.gmatch(line, '%S+') do
      call[#call + 1] = word == 'KEY' and KEYS[1] or word
    end
    if not redis.acl_check_cmd(unpack(call)) then forbidden[#forbidden + 1] = call[1] end
  end
  if #forbidden == 0 then
    redis.call('SET', KEYS[1], '1', 'PX', '1')
    redis.call('DEL', KEYS[1])
  end
  return forbidden`

/** The names of the commands of Postern that its user may not run. Needs a server of version 7 or later. */
export async function forbiddenCommands(
  ask: (question: readonly string[]) => Promise<StoreReply>,
  prefix: string,
): Promise<readonly string[]> {
  return listOf(await ask(['EVAL', PROBE, '1', `{${prefix}}:check`, ...COMMANDS])).map(String)
}
