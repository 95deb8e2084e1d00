import { isIPv4 } from 'node:net'
import type { UpstreamUrl } from './address.ts'
import { type Address, formatAddress } from './address.ts'
import type { PasswordFile } from './auth-fields.ts'
import type { Issue } from './decode.ts'
import type { Config } from './schema.ts'
import { formatDuration } from './units.ts'
import { type ServiceConfig, servicesOf } from './upstream-fields.ts'

/** What is wrong with values that are each right by themselves. */
export function conflictsIn(config: Config): readonly Issue[] {
  const { listen, admin, upstream, tokens } = config
  const issues: Issue[] = []
  const add = (key: string, message: string): void => {
    issues.push(issue(key.split('.'), message))
  }
  if (tokens.refreshLifetime < tokens.accessLifetime) {
    add(
      'tokens.refresh_lifetime',
      `must be at least tokens.access_lifetime, ${formatDuration(tokens.accessLifetime)}`,
    )
  }
  if (admin.address !== 'off' && overlap(admin.address, listen.address)) {
    add('admin.address', 'must differ from listen.address, or be off')
  }
  const services = servicesOf(upstream)
  for (const { path, service } of services) issues.push(...serviceConflicts(path, service, listen.address))
  const byGrant = 'device' in config.password
  if (byGrant && upstream.auth === 'off') {
    add('password.device', 'must have upstream.auth beside it, which says how to sign in')
  }
  for (const { path, service } of services) {
    // The password of a grant is tried at the device itself; its other services have accounts of their own.
    issues.push(...authConflicts(path, service, byGrant && service === upstream))
  }
  return issues
}

function issue(path: readonly string[], message: string): Issue {
  return { path, message, unknown: [] }
}

function serviceConflicts(above: readonly string[], { url, tls }: ServiceConfig, own: Address): Issue[] {
  const issues: Issue[] = []
  if (isOwnAddress(url, own)) {
    const message = 'must be the device, not listen.address: the sidecar would forward to itself'
    issues.push(issue([...above, 'url'], message))
  }
  if (tls.insecure && tls.ca !== undefined) {
    const message = `must be false beside ${[...above, 'tls', 'ca'].join('.')}, which would not be looked at`
    issues.push(issue([...above, 'tls', 'insecure'], message))
  }
  return issues
}

function authConflicts(
  above: readonly string[],
  { auth, headers }: ServiceConfig,
  byGrant: boolean,
): Issue[] {
  if (auth === 'off') return []
  const issues: Issue[] = []
  for (const [kind, { password }] of Object.entries<{ readonly password?: PasswordFile }>(auth)) {
    const beside = 'must be left out beside password.device: the password of the last grant is used'
    if (byGrant !== (password === undefined)) {
      issues.push(issue([...above, 'auth', kind, 'password', 'file'], byGrant ? beside : 'must be a path'))
    }
  }
  if (byGrant && 'form' in auth && auth.form.checkPath === undefined) {
    const message =
      'must be a path that the device gives to nobody who is not signed in, where password.device relies on it'
    issues.push(issue([...above, 'auth', 'form', 'check_path'], message))
  }
  const own = Object.keys(headers).find((name) => name.toLowerCase() === 'authorization')
  if (own !== undefined && !('form' in auth)) {
    const message = `must not be set beside ${[...above, 'auth'].join('.')}, which writes that field`
    issues.push(issue([...above, 'headers', own], message))
  }
  return issues
}

/** Whether two listeners would take the same address, which the kernel refuses. Host names are compared as text. */
function overlap(a: Address, b: Address): boolean {
  if (a.kind !== 'tcp' || b.kind !== 'tcp') return formatAddress(a) === formatAddress(b)
  return a.port === b.port && a.port !== 0 && (covers(a.host, b.host) || covers(b.host, a.host))
}

/** Whether a listener on one host takes the connections to another as well. `::` takes those to IPv4 addresses, too. */
function covers(host: string, other: string): boolean {
  return host === other || host === '::' || (host === '0.0.0.0' && isIPv4(other))
}

function isOwnAddress(url: UpstreamUrl, own: Address): boolean {
  if (url.kind === 'unix') return own.kind === 'unix' && url.path === own.path
  if (own.kind !== 'tcp' || url.port !== own.port) return false
  const everywhere = own.host === '0.0.0.0' || own.host === '::'
  return url.host === own.host || (everywhere && /^(?:localhost|127\.[\d.]+|::1)$/.test(url.host))
}
