import { SetupError } from '../system/setup-error.ts'
import type { Connection, StoreSettings } from './connection.ts'
import { connectToPrimary, openSentinels, type ServerFacts } from './find-primary.ts'
import { forbiddenCommands } from './refusal-watch.ts'
import { listOf, ServerReplyError, type StoreReply, unavailable } from './shared-store.ts'

/** What `check` wants to know of the server that has the keys. */
export interface ServerReport extends ServerFacts {
  readonly forbidden: readonly string[]
  /** Undefined if the user may not read the settings. */
  readonly settings: ServerSettings | undefined
  /** How many replicas are connected; undefined if the user may not ask for that. */
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
    const sentinels = openSentinels(settings, life.signal)
    const { connection, facts } = await connectToPrimary(settings, life.signal, sentinels)
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
    life.abort()
  }
}

const SETTINGS = ['maxmemory', 'maxmemory-policy', 'save', 'appendonly']

/** The reply; undefined if the user may not ask, or the server does not know the command: hosted ones hide it. */
function allowed(connection: Connection, question: readonly string[]): Promise<StoreReply | undefined> {
  return connection.send(question).catch((error: unknown) => {
    if (error instanceof ServerReplyError) return undefined
    throw error
  })
}

function settingsIn(reply: StoreReply | undefined): ServerSettings | undefined {
  const pairs = listOf(reply)
  const [memory, policy, save, log] = SETTINGS.map((name) => {
    const at = pairs.indexOf(name)
    return at === -1 ? undefined : String(pairs[at + 1])
  })
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
