import { checkedByDevice, passwordSources } from '../../config/password-fields.ts'
import type { Config } from '../../config/schema.ts'
import type { StoreSettings } from '../../fleet/connection.ts'
import { COMMANDS, inspectServer, type ServerReport } from '../../fleet/server-report.ts'
import { type StoreFailure, StoreUnavailable } from '../../fleet/shared-store.ts'
import { KINDS } from '../../overview/alarm-kinds.ts'
import { openPasswords } from '../../password/sources.ts'
import { systemClock } from '../../system/clock.ts'
import { type Check, CheckFailure, type Finding } from './finding.ts'

/** The oldest version whose scripts can do what Postern needs. */
const OLDEST_VERSION = 7

/** Connects to the shared store and examines its server; nothing to check without one. */
export function storeChecks(config: Config): readonly Check[] {
  const { tokens, store } = config
  if (typeof tokens.store === 'string') return []
  const settings = { ...store, address: tokens.store }
  return [
    {
      name: 'shared store',
      key: 'tokens.store',
      meaning: KINDS.PosternSharedStoreDown.meaning,
      remedy: 'correct tokens.store and the section store',
      run: () => checkStore(settings, config),
    },
  ]
}

const REMEDIES: Readonly<Record<StoreFailure, string | undefined>> = {
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

async function checkStore(settings: StoreSettings, config: Config): Promise<Finding> {
  const report = await inspectServer(settings).catch((error: unknown) => {
    if (!(error instanceof StoreUnavailable)) throw error
    const forbids = error.failure === 'refused' && error.message.includes('may not')
    throw new CheckFailure(error.message, {
      remedy: forbids ? grantAll(COMMANDS, settings) : REMEDIES[error.failure],
    })
  })
  const named = `${report.at} is ${nameOf(report)}`
  if (Number.parseInt(report.version, 10) < OLDEST_VERSION) {
    throw new CheckFailure(`${named}, which is too old`, {
      meaning: 'its scripts cannot do what Postern needs',
      remedy: `update it to version ${OLDEST_VERSION} or later, of Redis or Valkey`,
    })
  }
  if (report.forbidden.length > 0) {
    throw new CheckFailure(`the user may not run ${report.forbidden.join(', ')}`, {
      meaning: 'logins, refreshes or revocations fail',
      remedy: grantAll(report.forbidden, settings),
    })
  }
  const warnings = warningsOf(report, settings.replicas)
  if (await differs(config, report.password)) warnings.push(OTHER_PASSWORD)
  if (warnings.length === 0) {
    return report.settings === undefined ? `${named}; the user may not read its settings` : named
  }
  const joined = (part: keyof Warning): string => warnings.map((each) => each[part]).join('; ')
  return { warning: `${named}; ${joined('warning')}`, meaning: joined('meaning'), remedy: joined('remedy') }
}

interface Warning {
  readonly warning: string
  readonly meaning: string
  readonly remedy: string
}

const OTHER_PASSWORD: Warning = {
  warning: 'another sidecar has stored another password there',
  meaning:
    'a running sidecar with this password file logs nobody in; at its start it stores its own password, which revokes all tokens',
  remedy: 'give all sidecars with this store.prefix the same line in their password files',
}

/** Whether the line of the password source is another one than that of the store. A source that cannot be used has a check of its own. */
async function differs(config: Config, stored: ServerReport['password']): Promise<boolean> {
  if (stored === undefined || checkedByDevice(config)) return false
  const opened = await openPasswords(passwordSources(config), { clock: systemClock }).catch(() => undefined)
  if (opened === undefined) return false
  const own = await opened.fingerprint(Buffer.from(stored.salt, 'base64url'))
  opened.close()
  return own !== stored.fingerprint
}

/** The command for `redis-cli` that gives the user the rights. */
function grantAll(commands: readonly string[], { address, prefix }: StoreSettings): string {
  const all = address.database === 0 ? commands : [...commands, 'SELECT']
  const names = all.map((command) => `+${command.replace(/ .*/, '').toLowerCase()}`)
  return `ACL SETUSER ${address.user ?? 'default'} ~{${prefix}}:* ${names.join(' ')}`
}

function warningsOf({ settings, replicas }: ServerReport, wanted: number): Warning[] {
  const warnings: Warning[] = []
  if (settings?.evicts === true) {
    warnings.push({
      warning: `it evicts keys when its memory is full (maxmemory-policy ${settings.policy})`,
      meaning: 'clients may be logged out at any time',
      remedy: 'set maxmemory-policy to noeviction',
    })
  }
  if (settings?.persistent === false) {
    warnings.push({
      warning: 'it saves nothing to disk',
      meaning: 'its restart logs out all clients',
      remedy: 'set appendonly to yes',
    })
  }
  if (replicas !== undefined && replicas < wanted) {
    warnings.push({
      warning: `it has ${replicas} of ${wanted} replicas`,
      meaning: 'each login waits a fifth of store.timeout for a replica',
      remedy: 'start the replicas, or set store.replicas to 0',
    })
  }
  return warnings
}

function nameOf({ server, version, mode }: ServerReport): string {
  const name = `${server.charAt(0).toUpperCase()}${server.slice(1)} ${version}`
  return mode === 'standalone' ? name : `${name} in ${mode} mode`
}
