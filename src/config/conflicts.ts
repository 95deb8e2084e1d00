import { isIPv4 } from 'node:net'
import { asCgi } from '../http/fields.ts'
import { formatAddress, type ListenAddress } from '../system/listen-address.ts'
import type { UpstreamUrl } from './address.ts'
import { loginHas, type SessionAccount, tokenHeaders, writtenField } from './auth-fields.ts'
import type { Issue } from './decode.ts'
import { checkedByDevice, MOST_NAMES, socketOfHook } from './password-fields.ts'
import { hstsIn } from './response-header-field.ts'
import type { Config } from './schema.ts'
import { ownPair } from './tls-field.ts'
import { formatDuration } from './units.ts'
import { placesBounds, type ServiceConfig, servicesOf } from './upstream-fields.ts'
import { valueAt, type YamlValue } from './yaml.ts'

/** Adds an issue. `what`: what the key must be or do, as the end of a sentence. */
type Must = (key: string, what: string) => void

/**
 * Finds values that are valid on their own but contradict each other.
 *
 * @param hasFunctions the program that embeds Postern checks passwords
 */
export function conflictsIn(config: Config, hasFunctions = false): readonly Issue[] {
  const issues: Issue[] = []
  const mustBelow =
    (above: readonly string[]): Must =>
    (key, what) =>
      issues.push({ path: [...above, ...key.split('.')], message: `must ${what}` })
  const { listen, upstream, publicPaths } = config
  const services = servicesOf(upstream)
  const byGrant = checkedByDevice(config)
  const must = mustBelow([])
  judgePasswords(config, must)
  judgeWhole(config, must)
  judgeHook(config, hasFunctions, must)
  const unsigned = services.every(({ service }) => service.auth === 'off')
  for (const [index, entry] of publicPaths.entries())
    if (typeof entry !== 'string' && unsigned)
      must(`public_paths.${index}.signed_in`, 'be left out without upstream.auth')
  judgeRedirect(listen, config.admin, must)
  for (const { path, service } of services) judgeService(service, listen, path, mustBelow(path))
  if (byGrant && upstream.auth === 'off')
    must('password.device', 'be set together with upstream.auth, which defines how to sign in')
  for (const { path, service } of services) {
    // The main service checks the password of a grant; the services of `upstream.routes` have their own accounts.
    judgeAuth(service, byGrant && service === upstream, mustBelow(path))
    for (const name of Object.keys(upstream.responseHeaders))
      if (tokenHeaders(service.auth).some((each) => asCgi(each) === asCgi(name)))
        must(
          `upstream.response_headers.${name}`,
          `be left out: the device gives its token in it (${path.join('.')}.auth)`,
        )
    const own = headerOfAuth(service)
    if (own !== undefined) {
      const message = `must not be set together with ${path.join('.')}.auth, which writes that field`
      issues.push({ path: [...path, 'headers', own], message })
    }
  }
  return issues
}

/**
 * An issue unless exactly one of `password` and `passwords` is set, or none.
 *
 * @param hasFunctions the program that embeds Postern checks passwords: then none may be set
 */
export function passwordChoice(tree: YamlValue, hasFunctions: boolean): readonly Issue[] {
  const [one, several] = [valueAt(tree, ['password']), valueAt(tree, ['passwords'])]
  if (hasFunctions)
    return Object.entries({ password: one, passwords: several }).flatMap(([key, value]) =>
      value === undefined
        ? []
        : { path: [key], message: 'must be left out with the function verify, which checks the password' },
    )
  if (one === undefined && several === undefined)
    return [
      { path: ['password'], message: 'must have exactly one of file, htpasswd, shadow, device, socket' },
    ]
  if (one === undefined || several === undefined) return []
  return [{ path: ['passwords'], message: 'must not be set together with password; keep one of the two' }]
}

function judgePasswords({ passwords, limits }: Config, must: Must): void {
  if (passwords === undefined) return
  if (passwords.length === 0 || passwords.length > MOST_NAMES) {
    must('passwords', `have 1 to ${MOST_NAMES} entries`)
    return
  }
  for (const [index, { name, file, htpasswd, shadow, allow, enforce, limit }] of passwords.entries()) {
    const sources = [file, htpasswd, shadow].filter((each) => each !== undefined).length
    if (sources !== 1) must(`passwords.${index}`, 'have exactly one of file, htpasswd, shadow')
    if (passwords.findIndex((other) => other.name === name) < index)
      must(`passwords.${index}.name`, 'not be the name of an earlier entry')
    if (limit !== undefined && limits.api.per !== 'name')
      must(`passwords.${index}.limit`, 'be left out unless limits.api.per is name, which counts by name')
    if (!enforce && allow === undefined)
      must(`passwords.${index}.enforce`, 'be left out without allow, which it would try')
  }
}

/** The rules between keys outside of the services, most of them about a shared store. */
function judgeWhole(config: Config, must: Must): void {
  const { listen, admin, tokens, limits, store, upstream } = config
  const shared = typeof tokens.store === 'string' ? undefined : tokens.store
  if (tokens.refreshLifetime < tokens.accessLifetime)
    must(
      'tokens.refresh_lifetime',
      `be at least tokens.access_lifetime, ${formatDuration(tokens.accessLifetime)}`,
    )
  for (const name of ownPair(listen.tls) === undefined ? hstsIn(upstream.responseHeaders) : [])
    must(
      `upstream.response_headers.${name}`,
      'be left out unless listen.tls is {cert: file, key: file}: a browser that has seen the field offers no way around a certificate that it does not trust',
    )
  if (admin.address !== 'off' && overlap(admin.address, listen.address))
    must('admin.address', 'differ from listen.address, or be off')
  if (admin.tls === 'on' && listen.tls === 'off')
    must('admin.tls', 'be off if listen.tls is off, whose certificate it would serve')
  if (admin.tls === 'on' && admin.address !== 'off' && admin.address.kind === 'unix')
    must('admin.tls', 'be off for a Unix socket, which nobody can read on the way')
  if (shared !== undefined && checkedByDevice(config))
    must(
      'tokens.store',
      'be file or memory with password.device: a sidecar knows the password only after a login of its own, so it could not sign in for the tokens of the others',
    )
  for (const endpoint of ['api', 'oauth'] as const)
    if (limits[endpoint].per === 'name' && config.passwords === undefined)
      must(`limits.${endpoint}.per`, 'not be name without passwords, which have the names')
  if (limits.store === 'shared' && shared === undefined)
    must('limits.store', 'be local unless tokens.store is the URL of a shared store')
  if (shared?.password !== undefined && store.passwordFile !== undefined)
    must('store.password_file', 'be left out if the URL in tokens.store has a password; keep one of the two')
  if (shared?.tls === false && store.tls.ca !== undefined)
    must('store.tls.ca', 'be left out unless the URL in tokens.store begins with valkeys or rediss (TLS)')
}

function judgeHook({ tokens, ...config }: Config, hasFunctions: boolean, must: Must): void {
  const hook = hasFunctions ? 'verify' : socketOfHook(config) && 'password.socket'
  if (hook !== undefined && typeof tokens.store !== 'string')
    must(
      'tokens.store',
      `be file or memory with ${hook}: each sidecar asks the hook by itself, and two that know different fingerprints log nobody in`,
    )
}

function judgeRedirect(
  { redirect, address, tls }: Config['listen'],
  admin: Config['admin'],
  must: Must,
): void {
  if (redirect === 'off') return
  if (tls === 'off' || address.kind === 'unix')
    must('listen.redirect', 'be off unless listen.address is a port with TLS, to which it would lead')
  else if (overlap(redirect, address)) must('listen.redirect', 'differ from listen.address, or be off')
  else if (admin.address !== 'off' && overlap(redirect, admin.address))
    must('listen.redirect', 'differ from admin.address, or be off')
}

function judgeService(
  service: ServiceConfig,
  listen: Config['listen'],
  above: readonly string[],
  must: Must,
): void {
  const { url, tls } = service
  const { insecure, ca, weak, maxVersion, groups, pin, cert, key } = tls
  const name = [...above, 'tls', 'ca'].join('.')
  const { min, max } = placesBounds(service)
  for (const key of ['address', 'redirect'] as const) {
    const own = listen[key]
    if (own !== 'off' && isOwnAddress(url, own))
      must('url', `be the device, not listen.${key}: the sidecar would forward to itself`)
  }
  if (min > max) must('max_in_flight.min', 'be at most max')
  if (insecure && ca !== undefined)
    must('tls.insecure', `be false if ${name} is set, because ${name} would be ignored`)
  if (pin !== undefined && insecure)
    must('tls.insecure', 'be false with pin, which accepts one certificate; keep pin')
  if (pin !== undefined && ca !== undefined)
    must(
      'tls.ca',
      'be left out with pin, which accepts one certificate whatever its authority; keep one of the two',
    )
  if (!weak && (maxVersion === 'TLSv1' || maxVersion === 'TLSv1.1'))
    must(
      'tls.max_version',
      'be TLSv1.2 or TLSv1.3 without weak: true: OpenSSL speaks older versions only with weak signatures',
    )
  if (groups?.length === 0) must('tls.groups', 'name at least one group, or be left out')
  if (cert !== undefined && key === undefined) must('tls.key', 'be a path, because cert is set')
  if (key !== undefined && cert === undefined) must('tls.cert', 'be a path, because key is set')
  if (pin !== undefined && !url.origin.startsWith('https:')) {
    const where = [...above, 'url'].join('.')
    must('tls.pin', `be left out unless ${where} begins with https: without TLS there is no certificate`)
  }
}

function judgeAuth({ auth }: ServiceConfig, byGrant: boolean, must: Must): void {
  if (auth === 'off') return
  const { kind, password } = auth
  const hasPassword = password !== undefined
  if (byGrant && hasPassword)
    must('auth.password.file', 'be left out with password.device: the password of the last grant is used')
  if (!byGrant && !hasPassword && loginHas('$password', auth))
    must('auth.password.file', `be a path${kind === 'session' ? ': the login contains $password' : ''}`)
  if (kind !== 'session') return
  judgeSession(auth, must)
  if (byGrant) judgeByGrant(auth, must)
}

function judgeSession(auth: SessionAccount, must: Must): void {
  const { login, token, send } = auth.session
  if (login.json !== undefined && login.form !== undefined)
    must('auth.session.login.form', 'not be set together with json; keep one of the two')
  if (token === undefined && send !== undefined)
    must('auth.session.token', 'have exactly one of header, cookie, json: send carries the token')
  if (token !== undefined && !('cookie' in token) && send === undefined)
    must('auth.session.send.header', 'be the field in which requests carry the token')
  if (auth.user === undefined && loginHas('$user', auth))
    must('auth.user', 'be a user name: the login contains $user')
  if (login.json === undefined && login.form === undefined) return
  const body = `auth.session.login.${login.json === undefined ? 'form' : 'json'}`
  if (auth.user !== undefined && !loginHas('$user', auth))
    must(body, 'have $user as a value, because auth.user is set')
  if (auth.password !== undefined && !loginHas('$password', auth))
    must(body, 'have $password as a value, because auth.password is set')
}

/** With `password.device`, the session must tell a right password from a wrong one. */
function judgeByGrant(auth: SessionAccount, must: Must): void {
  const { login, token } = auth.session
  if (auth.checkPath === undefined)
    must(
      'auth.check_path',
      'be a path that needs a login: password.device uses it to tell a right password from a wrong one',
    )
  if (!loginHas('$password', auth))
    must(
      `auth.session.login.${login.json === undefined ? 'form' : 'json'}`,
      'contain $password: the device checks it for password.device',
    )
  if (token !== undefined && !('cookie' in token))
    must(
      'auth.session.token',
      'be a cookie, or be left out, with password.device: a response without a token says nothing about the password',
    )
}

/** The name in `headers` of the field that the sidecar writes to sign in. */
function headerOfAuth({ auth, headers }: ServiceConfig): string | undefined {
  const written = auth === 'off' ? undefined : writtenField(auth)
  return Object.keys(headers).find(
    (name) => written !== undefined && headers[name] !== null && asCgi(name) === asCgi(written),
  )
}

/** Whether two listeners would use the same address, which the kernel refuses. Host names are compared as text. */
function overlap(a: ListenAddress, b: ListenAddress): boolean {
  if (a.kind !== 'tcp' || b.kind !== 'tcp') return formatAddress(a) === formatAddress(b)
  return a.port === b.port && a.port !== 0 && (covers(a.host, b.host) || covers(b.host, a.host))
}

/** Whether a listener on one host also accepts connections to the other. `::` also accepts them for IPv4 addresses. */
function covers(host: string, other: string): boolean {
  return host === other || host === '::' || (host === '0.0.0.0' && isIPv4(other))
}

function isOwnAddress(url: UpstreamUrl, own: ListenAddress): boolean {
  if (url.kind === 'unix') return own.kind === 'unix' && url.path === own.path
  if (own.kind !== 'tcp' || url.port !== own.port) return false
  const everywhere = own.host === '0.0.0.0' || own.host === '::'
  return url.host === own.host || (everywhere && /^(?:localhost|127\.[\d.]+|::1)$/.test(url.host))
}
