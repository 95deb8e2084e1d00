import { checkedByDevice, passwordSources } from '../../config/password-fields.ts'
import type { Config } from '../../config/schema.ts'
import { STORE_BOUNDS, type StoreSettings } from '../../fleet/connection.ts'
import { COMMANDS, inspectServer, type ServerReport } from '../../fleet/server-report.ts'
import { type StoreFailure, StoreUnavailable } from '../../fleet/shared-store.ts'
import { KINDS } from '../../overview/alarm-kinds.ts'
import { openPasswords } from '../../password/sources.ts'
import { systemClock } from '../../system/clock.ts'
import { SetupError } from '../../system/setup-error.ts'
import { check } from './part.ts'

type Store = Awaited<ReturnType<typeof lookAtStore>>

/** The oldest version whose scripts have the functions that Postern needs. */
const OLDEST_VERSION = 7

/** Connects to the shared store and examines its server. */
export const STORE = check({
  subjects({ config }) {
    const address = config.tokens.store
    return typeof address === 'string'
      ? []
      : [{ settings: { ...config.store, ...STORE_BOUNDS, address }, config }]
  },
  about: () => ({
    name: 'shared store',
    key: 'tokens.store',
    meaning: KINDS.PosternSharedStoreDown.meaning,
    remedy: 'correct tokens.store and the section store',
  }),
  look: lookAtStore,
  rows: {
    'too old': ({ report }) =>
      Number.parseInt(report.version, 10) < OLDEST_VERSION && {
        failed: `${serverName(report)}, which is too old`,
        meaning: 'its scripts cannot do what Postern needs',
        remedy: `update it to version ${OLDEST_VERSION} or later, of Redis or Valkey`,
      },
    'missing rights': ({ report, settings }) =>
      report.forbidden.length > 0 && {
        failed: `the user may not run ${report.forbidden.join(', ')}`,
        meaning: 'logins, refreshes or revocations fail',
        remedy: grantAll(report.forbidden, settings),
      },
    'losing tokens': (store) => {
      const found = LOSSES.flatMap((find) => find(store) || [])
      if (found.length === 0) return undefined
      const joined = (part: keyof Loss): string => found.map((each) => each[part]).join('; ')
      const warning = `${serverName(store.report)}; ${joined('warning')}`
      return { warning, meaning: joined('meaning'), remedy: joined('remedy') }
    },
    'hidden settings': ({ report }) =>
      report.settings === undefined && `${serverName(report)}; the user may not read its settings`,
    good: ({ report }) => serverName(report),
  },
})

type Loss = Readonly<Record<'warning' | 'meaning' | 'remedy', string>>

/** Settings that lose tokens or logins although the server works. All that apply are joined in one warning. */
const LOSSES: readonly ((store: Store) => Loss | false)[] = [
  ({ report: { settings } }) =>
    settings?.evicts === true && {
      warning: `it evicts keys when its memory is full (maxmemory-policy ${settings.policy})`,
      meaning: 'clients may be logged out at any time',
      remedy: 'set maxmemory-policy to noeviction',
    },
  ({ report: { settings } }) =>
    settings?.persistent === false && {
      warning: 'it saves nothing to disk',
      meaning: 'its restart logs out all clients',
      remedy: 'set appendonly to yes',
    },
  ({ report: { replicas }, settings }) =>
    replicas !== undefined &&
    replicas < settings.replicas && {
      warning: `it has ${replicas} of ${settings.replicas} replicas`,
      meaning: 'each login waits 0.2 s for a replica',
      remedy: 'start the replicas, or set store.replicas to 0',
    },
  ({ differs }) =>
    differs && {
      warning: 'another sidecar has stored another password there',
      meaning:
        'a running sidecar with this password file logs nobody in; at its start it stores its own password, which revokes all tokens',
      remedy: 'give all sidecars with this store.prefix the same line in their password files',
    },
]

/** The remedies for a server that cannot be asked. */
const REMEDIES: Readonly<Record<StoreFailure, string>> = {
  timeout:
    'see whether the server is overloaded, and whether tokens.store names its host, port and TLS (valkeys://)',
  disconnected:
    'start the server, or correct the host, the port and TLS (valkeys://) in tokens.store, or store.tls.ca',
  refused: 'correct the user in tokens.store, or the password in store.password_file',
  'read-only':
    'name the primary, or an address that follows it; see the log of the server if it cannot write',
  full: 'raise maxmemory of the server, or remove what others keep there',
  loading: 'wait until the server has its data',
  error: 'see whether tokens.store names one Valkey or Redis server that is no node of a cluster',
}

/** `differs`: another sidecar has stored another password. */
async function lookAtStore({
  settings,
  config,
}: {
  readonly settings: StoreSettings
  readonly config: Config
}) {
  const report = await inspectServer(settings).catch((error: unknown) => {
    if (!(error instanceof StoreUnavailable)) throw error
    const { failure, message } = error
    const forbids = failure === 'refused' && message.includes('may not')
    const remedy = forbids ? grantAll(COMMANDS, settings) : REMEDIES[failure]
    throw new SetupError(message, { remedy, exitCode: 1, cause: error })
  })
  return { settings, report, differs: await differs(config, report.password) }
}

/** Whether the password source and the store have different passwords. A source that cannot be used has a check of its own. */
async function differs(config: Config, stored: ServerReport['password']): Promise<boolean> {
  if (stored === undefined || checkedByDevice(config)) return false
  using opened = await openPasswords(passwordSources(config), { clock: systemClock }).catch(() => undefined)
  if (opened === undefined) return false
  return (await opened.fingerprint(Buffer.from(stored.salt, 'base64url'))) !== stored.fingerprint
}

/** The command for `redis-cli` that gives the user the rights. */
function grantAll(commands: readonly string[], { address, prefix }: StoreSettings): string {
  const all = address.database === 0 ? commands : [...commands, 'SELECT']
  const names = all.map((command) => `+${command.replace(/ .*/, '').toLowerCase()}`)
  return `ACL SETUSER ${address.user ?? 'default'} ~{${prefix}}:* ${names.join(' ')}`
}

/** A clause about the server: its address, program and version. */
function serverName({ at, server, version, mode }: ServerReport): string {
  const name = `${at} is ${server.charAt(0).toUpperCase()}${server.slice(1)} ${version}`
  return mode === 'standalone' ? name : `${name} in ${mode} mode`
}
