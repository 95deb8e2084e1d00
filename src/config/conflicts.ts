import { isIPv4 } from 'node:net'
import { formatAddress, type ListenAddress } from '../system/listen-address.ts'
import type { UpstreamUrl } from './address.ts'
import { type PasswordFile, sessionRules } from './auth-fields.ts'
import { checkedByDevice, MOST_NAMES, type PasswordConfig } from './password-fields.ts'
import type { Issue } from './problem.ts'
import type { Config } from './schema.ts'
import { ownPair } from './tls-field.ts'
import { formatDuration } from './units.ts'
import { placesBounds, type ServiceConfig, servicesOf } from './upstream-fields.ts'
import { valueAt, type YamlValue } from './yaml.ts'

/** Finds values that are valid on their own but contradict each other. */
export function conflictsIn(config: Config): readonly Issue[] {
  const { listen, upstream } = config
  const services = servicesOf(upstream)
  const byGrant = checkedByDevice(config)
  const unsigned = services.every(({ service }) => service.auth === 'off')
  return [
    ...passwordConflicts(config),
    ...issuesOf(globalRules(config)),
    ...config.publicPaths.flatMap((entry, index) =>
      typeof entry !== 'string' && unsigned
        ? [issue(['public_paths', String(index), 'signed_in'], 'must be left out without upstream.auth')]
        : [],
    ),
    ...services.flatMap(({ path, service }) => issuesOf(serviceRules(path, service, listen.address), path)),
    ...issuesOf([
      [
        byGrant && upstream.auth === 'off',
        'password.device',
        'must be set together with upstream.auth, which defines how to sign in',
      ],
    ]),
    // The main service checks the password of a grant; the services of `upstream.routes` have their own accounts.
    ...services.flatMap(({ path, service }) => authConflicts(path, service, byGrant && service === upstream)),
  ]
}

/** A rule between keys: `message` says what `key` must be. */
type Rule = readonly [isBroken: boolean, key: string, message: string]

/** The broken rules. `above`: the section in which their keys are. */
function issuesOf(rules: readonly Rule[], above: readonly string[] = []): Issue[] {
  return rules.flatMap(([isBroken, key, message]) =>
    isBroken ? [issue([...above, ...key.split('.')], message)] : [],
  )
}

function issue(path: readonly string[], message: string): Issue {
  return { path, message, unknown: [] }
}

/** The problem unless exactly one of `password` and `passwords` is set. */
export function passwordChoice(tree: YamlValue): readonly Issue[] {
  const [one, several] = [valueAt(tree, ['password']), valueAt(tree, ['passwords'])]
  if (one === undefined && several === undefined)
    return [issue(['password'], 'must have exactly one of file, htpasswd, shadow, device')]
  if (one === undefined || several === undefined) return []
  return [issue(['passwords'], 'must not be set together with password; keep one of the two')]
}

/** The problems between the entries of `passwords`, and within each. */
function passwordConflicts({ passwords }: PasswordConfig): readonly Issue[] {
  if (passwords === undefined) return []
  if (passwords.length === 0 || passwords.length > MOST_NAMES)
    return [issue(['passwords'], `must have 1 to ${MOST_NAMES} entries`)]
  return passwords.flatMap(({ name, file, htpasswd, shadow }, index, all) => {
    const at = ['passwords', String(index)]
    const sources = [file, htpasswd, shadow].filter((each) => each !== undefined).length
    const isTwin = all.findIndex((other) => other.name === name) < index
    return [
      ...(sources === 1 ? [] : [issue(at, 'must have exactly one of file, htpasswd, shadow')]),
      ...(isTwin ? [issue([...at, 'name'], 'must not be the name of an earlier entry')] : []),
    ]
  })
}

/** The rules between keys outside of the services, most of them about a shared store. */
function globalRules(config: Config): readonly Rule[] {
  const { listen, admin, tokens, limits, store } = config
  const shared = typeof tokens.store === 'string' ? undefined : tokens.store
  return [
    [
      tokens.refreshLifetime < tokens.accessLifetime,
      'tokens.refresh_lifetime',
      `must be at least tokens.access_lifetime, ${formatDuration(tokens.accessLifetime)}`,
    ],
    [
      admin.address !== 'off' && overlap(admin.address, listen.address),
      'admin.address',
      'must differ from listen.address, or be off',
    ],
    [
      shared !== undefined && checkedByDevice(config),
      'tokens.store',
      'must be file or memory with password.device: a sidecar knows the password only after a login of its own, so it could not sign in for the tokens of the others',
    ],
    ...(['api', 'oauth'] as const).map(
      (endpoint): Rule => [
        limits[endpoint].per === 'name' && config.passwords === undefined,
        `limits.${endpoint}.per`,
        'must not be name without passwords, which have the names',
      ],
    ),
    [
      limits.store === 'shared' && shared === undefined,
      'limits.store',
      'must be local unless tokens.store is the URL of a shared store',
    ],
    [
      listen.reusePort && listen.address.kind !== 'tcp',
      'listen.reuse_port',
      'must be false unless listen.address is host:port',
    ],
    [
      listen.reusePort && shared === undefined,
      'listen.reuse_port',
      'must be false unless tokens.store is the URL of a shared store: a sidecar would refuse the tokens of the others',
    ],
    [
      listen.reusePort && listen.tls !== 'off' && ownPair(listen.tls) === undefined,
      'listen.reuse_port',
      'must be false unless listen.tls is off or {cert: file, key: file}: each sidecar would generate a certificate of its own',
    ],
    [
      shared?.password !== undefined && store.passwordFile !== undefined,
      'store.password_file',
      'must be left out if the URL in tokens.store has a password; keep one of the two',
    ],
    [
      shared?.tls === false && store.tls.ca !== undefined,
      'store.tls.ca',
      'must be left out unless the URL in tokens.store begins with valkeys or rediss (TLS)',
    ],
    [
      store.tls.insecure && store.tls.ca !== undefined,
      'store.tls.insecure',
      'must be false if store.tls.ca is set, because it would be ignored',
    ],
  ]
}

function serviceRules(above: readonly string[], service: ServiceConfig, own: ListenAddress): readonly Rule[] {
  const { url, tls } = service
  const ca = [...above, 'tls', 'ca'].join('.')
  const pinned = tls.pin !== undefined
  const { min, max } = placesBounds(service)
  return [
    [
      isOwnAddress(url, own),
      'url',
      'must be the device, not listen.address: the sidecar would forward to itself',
    ],
    [min > max, 'max_in_flight.min', 'must be at most max'],
    [
      tls.insecure && tls.ca !== undefined,
      'tls.insecure',
      `must be false if ${ca} is set, because ${ca} would be ignored`,
    ],
    [
      pinned && tls.insecure,
      'tls.insecure',
      'must be false with pin, which accepts one certificate; keep pin',
    ],
    [
      pinned && tls.ca !== undefined,
      'tls.ca',
      'must be left out with pin, which accepts one certificate whatever its authority; keep one of the two',
    ],
    [
      !tls.weak && (tls.minVersion === 'TLSv1' || tls.minVersion === 'TLSv1.1'),
      'tls.min_version',
      'must be TLSv1.2 or TLSv1.3 without weak: true: OpenSSL speaks older versions only with weak signatures',
    ],
    [tls.cert !== undefined && tls.key === undefined, 'tls.key', 'must be a path, because cert is set'],
    [tls.key !== undefined && tls.cert === undefined, 'tls.cert', 'must be a path, because key is set'],
    [
      pinned && !url.origin.startsWith('https:'),
      'tls.pin',
      `must be left out unless ${[...above, 'url'].join('.')} begins with https: without TLS there is no certificate`,
    ],
  ]
}

function authConflicts(
  above: readonly string[],
  { auth, headers }: ServiceConfig,
  byGrant: boolean,
): readonly Issue[] {
  if (auth === 'off') return []
  const unneeded = 'must be left out with password.device: the password of the last grant is used'
  const kinds = Object.entries<{ readonly password?: PasswordFile }>(auth)
  const rules = kinds.map(([kind, { password }]): Rule => {
    const isWrong = kind !== 'session' && byGrant !== (password === undefined)
    return [isWrong, `auth.${kind}.password.file`, byGrant ? unneeded : 'must be a path']
  })
  rules.push([
    byGrant && 'form' in auth && auth.form.checkPath === undefined,
    'auth.form.check_path',
    'must be a path that needs a login: password.device uses it to tell a right password from a wrong one',
  ])
  if ('session' in auth) {
    rules.push(...sessionRules(auth.session), [
      byGrant,
      'auth.session',
      'must be basic, digest or form with password.device: a device may give a token whatever the password',
    ])
  }
  const written = 'form' in auth ? undefined : 'session' in auth ? auth.session.send.header : 'Authorization'
  const own = Object.keys(headers).find((name) => name.toLowerCase() === written?.toLowerCase())
  const message = `must not be set together with ${[...above, 'auth'].join('.')}, which writes that field`
  return [
    ...issuesOf(rules, above),
    ...(own === undefined ? [] : [issue([...above, 'headers', own], message)]),
  ]
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
