import { dirname } from 'node:path'
import { isMapping, type YamlMapping, type YamlValue } from './yaml.ts'

/** The values that a first configuration sets. All other keys stay at their defaults. */
interface FirstSettings extends FirstPassword {
  readonly file: string
  /** The first lines: comments. */
  readonly title: string
  readonly url: string
  readonly tls?: string | undefined
  /** The most requests at the device at once; default: that of the key. */
  readonly maxInFlight?: number | 'auto' | undefined
  /** The most streams, and the most WebSockets, beside them; default: those of the keys. */
  readonly beside?: number | undefined
  /** Further lines for `upstream`, which the device needs. */
  readonly lines?: readonly string[] | undefined
  /** The login of the device that the comment about `upstream.auth` shows; default: Digest. */
  readonly login?: FirstLogin | undefined
  /** Whether the device itself has the path at which clients log out. */
  readonly hasRevocation?: boolean | undefined
  readonly stateDir: string
  /** The addresses of the public and the admin listener; default: `auto`, and the default of `admin.address`. */
  readonly addresses?: { readonly listen: string; readonly admin: string } | undefined
  /** The words that start Postern. */
  readonly program?: string
  /** The flag with which the commands find the file. */
  readonly flag?: string
}

/** The value of `password`, and of `upstream.auth` if the device checks the password. */
export interface FirstPassword {
  readonly password: YamlMapping
  readonly auth?: YamlMapping
}

/** A login of the device: `upstream.auth` without its account. */
interface FirstLogin {
  readonly auth: YamlMapping
  readonly asksUser: boolean
}

/** Where clients log out, in every first configuration. */
export const REVOCATION_PATH = '/oauth/revoke'

/** The text of a first configuration: the keys that it sets, and the most useful other keys as comments. */
export function firstConfiguration({
  file: path,
  title,
  url,
  tls,
  maxInFlight,
  beside,
  password,
  auth,
  lines = [],
  login: seen = { auth: { kind: 'digest' }, asksUser: true },
  hasRevocation = false,
  stateDir,
  addresses,
  program = 'postern',
  flag = `--config ${path.replaceAll(/\p{Cc}/gu, '?')}`,
}: FirstSettings): string {
  // A line end in the path would end the comment.
  const file = path.replaceAll(/\p{Cc}/gu, '?')
  const folder = dirname(file)
  const login =
    auth === undefined
      ? `# auth: ${flow(withAccount(seen, `${folder}/device-password`))}`
      : `auth: ${flow(auth)}`
  return `${title}
# Only upstream.url and the password have no default. A commented line shows a default; configuration.md lists every
# key. Environment variables (POSTERN_LIMITS_API_REQUESTS=120) and flags (--set limits.api.requests=120) override this
# file. To check a change before it takes effect:  ${program} check ${flag}

upstream:
  # The device. http://host:port, https://host:port, or http+unix:/path/to.sock
  url: ${flow(url)}
  # For an https device whose certificate the system does not know: postern check prints the line to write.
  ${tls === undefined ? `# tls: {ca: ${folder}/device.pem}` : `tls: ${tls}`}
  # The Host header the device sees: "preserve" keeps the client's, "target" names the device, or write a name.
  # host: preserve
  # Fields that the firmware expects on every request. A secret belongs in a file of its own.
  # headers:
  #   X-Api-Key: {file: ${folder}/device-key}
  # The most requests at the device at once, learned between two numbers, or a number. Others wait; when the queue is full, they are refused.
  ${maxInFlight === undefined ? '# max_in_flight: {min: 1, max: 4}' : `max_in_flight: ${maxInFlight}`}
${beside === undefined ? '' : besideKeys(beside)}  # queue: {size: 128, timeout: 5s}
${lines.length === 0 ? '' : neededKeys(lines)}  # The firmware's own login, if it has one. The kind is basic, digest or session (a form, or an API).
  ${login}
  # A cheap page of the device. With it, the metric postern_upstream_up tells whether the device responds.
  # health: {path: null, interval: 10s}

password:
  # The device password, for which clients get tokens. A file has one line, hashed by "postern hash-password" (plain text also
  # works); htpasswd and shadow are files with the hash of a user; device: true is the login of upstream.auth.
  ${Object.entries(password).map(([source, value]) => `${source}: ${flow(value)}`)}

listen:
  # auto (port 8443) or auto:port is every IPv4 and IPv6 address. Or host:port, unix:/path, or fd:3 behind postern.socket (systemd
  # then binds port 443, without root here).
  address: ${addresses === undefined ? 'auto' : addresses.listen}
  # auto makes a self-signed certificate in the state directory, for the names and addresses of the machine; listen.tls.names
  # lists others, such as device.example.com.
  # tls: {cert: ${folder}/tls/cert.pem, key: ${folder}/tls/key.pem}
  # Proxies in front of Postern. Only their X-Forwarded-For is trusted.
  # trusted_proxies: [10.0.0.0/8]

admin:
  # The live page, and /metrics, /healthz and /readyz without a login: only your monitoring should reach the address.
  ${addresses === undefined ? '# address: 127.0.0.1:9464' : `address: ${addresses.admin}`}
  # TLS with the certificate of listen.tls, for an address that is not on loopback.
  # tls: off
  # The password of the live page: postern hash-password > FILE. Without one, the page is served on loopback only, and cannot revoke.
  # password_file: /etc/postern/page-password

tokens:
  # "file" keeps tokens across restarts, as digests in the state directory. With "memory" clients log in again.
  # store: file

oauth:
  # Where a client logs out: it posts one of its tokens there (RFC 7009). ${hasRevocation ? 'The device itself has /oauth/revoke, so choose another path.' : 'The device never sees these requests.'}
  ${hasRevocation ? `# revocation_path: ${REVOCATION_PATH}` : `revocation_path: ${REVOCATION_PATH}`}

limits:
  # Requests per window, for each client address.
  # api: {requests: 60, window: 60s, per: client}
  # oauth: {requests: 30, window: 60s, per: client}
  # After four wrong passwords of a client, each further attempt waits: 0.25 s, then twice as long each time, up to 30 s.
  wrong_passwords: slow

# A login page for browsers that open the device's own pages.
# browser: {login: on}

# For tokens and the self-signed certificate. "postern status" and "postern revoke" find the service by it.
state_dir: ${flow(stateDir)}

# The realm in the WWW-Authenticate field of a 401.
# realm: device
`
}

function besideKeys(most: number): string {
  return `  # Streams and WebSockets have connections of their own beside these.
  max_streams: ${most}
  max_tunnels: ${most}
`
}

function neededKeys(lines: readonly string[]): string {
  return ['What this device needs, as init found out.', ...lines]
    .map((line, at) => `  ${at === 0 ? '# ' : ''}${line}\n`)
    .join('')
}

function withAccount({ auth: { kind = '', ...keys }, asksUser }: FirstLogin, file: string): YamlMapping {
  return { kind, ...(asksUser && { user: 'admin' }), password: { file }, ...keys }
}

/** The configuration of the packages. Its device is a documentation address (RFC 5737). */
export function shippedConfiguration(): string {
  const file = '/etc/postern/postern.yaml'
  return firstConfiguration({
    file,
    title: `# yaml-language-server: $schema=./postern.schema.json
#
# Postern's configuration for a first installation: ${file}`,
    url: 'http://192.0.2.10:80',
    password: { file: '/etc/postern/password' },
    stateDir: '/var/lib/postern',
  })
}

/** A value as YAML on one line. A text has quotes, as in JSON, unless it is unambiguous to every parser. */
export function flow(value: YamlValue): string {
  if (isMapping(value)) {
    return `{${Object.entries(value)
      .map(([key, each]) => `${keyText(key)}: ${flow(each)}`)
      .join(', ')}}`
  }
  const isPlain = /^(?:[a-z+]+:\/\/|\/)[\w./-]*(?::\d+)?$/i.test(String(value))
  return isPlain || isWord(value) ? String(value) : JSON.stringify(value)
}

const keyText = (key: string): string => (isWord(key) ? key : JSON.stringify(key))

/** Whether every parser reads a text as text without quotes. YAML 1.1 has `on` and `y` as booleans. */
function isWord(text: YamlValue): boolean {
  return (
    typeof text === 'string' &&
    /^[a-z][a-z_-]*$/i.test(text) &&
    !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(text)
  )
}
