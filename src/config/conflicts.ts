import { formatAddress } from './address.ts'
import type { Address, Config, PasswordFile, UpstreamConfig, UpstreamUrl } from './config.ts'
import type { Issue } from './decode.ts'
import { formatDuration } from './duration.ts'

/** What is wrong with values that are each right by themselves. */
export function conflictsIn(config: Config): readonly Issue[] {
  const { listen, admin, upstream, tokens } = config
  const issues: Issue[] = []
  const add = (key: string, message: string): void => {
    issues.push({ path: key.split('.'), message, unknown: [] })
  }
  if (tokens.refreshLifetime < tokens.accessLifetime) {
    add(
      'tokens.refresh_lifetime',
      `must be at least tokens.access_lifetime, ${formatDuration(tokens.accessLifetime)}`,
    )
  }
  if (admin.address !== 'off' && isSameAddress(admin.address, listen.address)) {
    add('admin.address', 'must differ from listen.address, or be off')
  }
  if (isOwnAddress(upstream.url, listen.address)) {
    add('upstream.url', 'must be the device, not listen.address: the sidecar would forward to itself')
  }
  if (upstream.tls.insecure && upstream.tls.ca !== undefined) {
    add('upstream.tls.insecure', 'must be false beside upstream.tls.ca, which would not be looked at')
  }
  return [...issues, ...authConflicts(upstream, 'device' in config.password)]
}

function authConflicts({ auth, headers }: UpstreamConfig, byGrant: boolean): readonly Issue[] {
  if (auth === 'off') {
    const message = 'must have upstream.auth beside it, which says how to sign in'
    return byGrant ? [{ path: ['password', 'device'], message, unknown: [] }] : []
  }
  const issues: Issue[] = []
  for (const [kind, { password }] of Object.entries<{ readonly password?: PasswordFile }>(auth)) {
    const path = ['upstream', 'auth', kind, 'password', 'file']
    const beside = 'must be left out beside password.device: the password of the last grant is used'
    if (byGrant !== (password === undefined)) {
      issues.push({ path, message: byGrant ? beside : 'must be a path', unknown: [] })
    }
  }
  if (byGrant && 'form' in auth && auth.form.checkPath === undefined) {
    const message =
      'must be a path that the device gives to nobody who is not signed in, where password.device relies on it'
    issues.push({ path: ['upstream', 'auth', 'form', 'check_path'], message, unknown: [] })
  }
  const own = Object.keys(headers).find((name) => name.toLowerCase() === 'authorization')
  if (own !== undefined && !('form' in auth)) {
    const message = 'must not be set beside upstream.auth, which writes that field'
    issues.push({ path: ['upstream', 'headers', own], message, unknown: [] })
  }
  return issues
}

function isSameAddress(a: Address, b: Address): boolean {
  if (a.kind === 'tcp' && a.port === 0) return false
  return formatAddress(a) === formatAddress(b)
}

function isOwnAddress(url: UpstreamUrl, own: Address): boolean {
  if (url.kind === 'unix') return own.kind === 'unix' && url.path === own.path
  if (own.kind !== 'tcp' || url.port !== own.port) return false
  const everywhere = own.host === '0.0.0.0' || own.host === '::'
  return url.host === own.host || (everywhere && /^(?:localhost|127\.[\d.]+|::1)$/.test(url.host))
}
