import { parseAuthority, portProblem, socketPathProblem } from './address.ts'
import { optional, section, type ValueOf } from './field.ts'
import { duration, flag, integer, path, plainText, text, unless } from './value-fields.ts'
import type { Parsed } from './yaml.ts'

/** A host and a port. An IPv6 address has no brackets. */
export interface StoreNode {
  readonly host: string
  readonly port: number
}

/** The shared store that a URL names. User and password are decoded. */
export interface StoreAddress {
  /** `nodes` are the server, the sentinels, or some nodes of the cluster; empty for a Unix socket. */
  readonly kind: 'single' | 'unix' | 'sentinel' | 'cluster'
  readonly nodes: readonly StoreNode[]
  readonly path: string | undefined
  /** The name of the primary at the sentinels. */
  readonly primary: string | undefined
  readonly database: number
  readonly tls: boolean
  readonly user: string | undefined
  readonly password: string | undefined
}

/** Whether sentinels or a cluster name the servers, so that the configuration does not. */
export function areDiscovered({ kind }: StoreAddress): boolean {
  return kind === 'sentinel' || kind === 'cluster'
}

/** The servers that a URL names, without its user and password: `host:6379`, `[2001:db8::1]:6379`, or the path of the socket. */
export function describeStore({ nodes, path }: StoreAddress): string {
  return (
    path ?? nodes.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`).join(', ')
  )
}

const EXAMPLE = 'valkey://host:6379'

/** What `tokens.store` may be, for its error message. */
export const STORE_PROBLEM = `must be file, memory, or the address of a shared store: ${EXAMPLE}, valkeys://host:6379 (TLS), valkey+unix:/path, valkey+sentinel://host:26379/primary-name or valkey+cluster://host:6379; redis is the same as valkey`

const ESCAPES = 'in a user or password, write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23 and % as %25'
const HOST_PROBLEM = `must name each server as host, host:port or [IPv6]:port; ${ESCAPES}`

const SENTINEL_PORT = 26_379
const SERVER_PORT = 6_379

/** Parses the address of a shared store. No problem quotes the text, which may hold a password. */
export function parseStoreUrl(text: string): Parsed<StoreAddress> {
  const [, secure, form = 'single', rest] =
    /^(?:valkey|redis)(s)?(?:\+(unix|sentinel|cluster))?:([!-~]+)$/.exec(text) ?? []
  if (rest === undefined) return { problem: STORE_PROBLEM }
  if (/[?#]/.test(rest)) return { problem: `must have no query and no fragment; ${ESCAPES}` }
  if (form === 'unix') {
    return secure === undefined ? parseUnix(rest) : { problem: 'must not ask for TLS on a Unix socket' }
  }
  const [, authority, path = ''] = /^\/\/([^/]+)(?:\/(.*))?$/.exec(rest) ?? []
  if (authority === undefined) return { problem: `must have // and a host, such as ${EXAMPLE}` }
  const account = parseAccount(authority)
  if ('problem' in account) return account
  const servers = account.value.host.split(',')
  const nodes = servers.flatMap((each) => parseNode(each, form === 'sentinel' ? SENTINEL_PORT : SERVER_PORT))
  if (nodes.length < servers.length) return { problem: HOST_PROBLEM }
  const parsed = parseAddress(form, nodes.length, path)
  if ('problem' in parsed) return parsed
  const { user, password } = account.value
  return { value: { ...parsed.value, nodes, path: undefined, tls: secure !== undefined, user, password } }
}

/** `/path`, or `//user:password@/path`. */
function parseUnix(rest: string): Parsed<StoreAddress> {
  const [, authority = '', path = rest] = /^\/\/([^/]*)(\/.*)$/.exec(rest) ?? []
  const account = parseAccount(authority)
  if ('problem' in account) return account
  const { user, password, host } = account.value
  const problem = host === '' ? socketPathProblem(path) : 'must name no host before the path of the socket'
  if (problem !== undefined) return { problem }
  const tls = false
  return { value: { kind: 'unix', database: 0, primary: undefined, nodes: [], path, tls, user, password } }
}

/** What follows the hosts: a database; with sentinels, the name of the primary before it. */
function parseAddress(
  form: string,
  servers: number,
  path: string,
): Parsed<Pick<StoreAddress, 'kind' | 'database' | 'primary'>> {
  if (form === 'sentinel') {
    const [, primary, digits = '0'] = /^([\w.-]+)(?:\/(\d{1,5}))?$/.exec(path) ?? []
    return primary === undefined
      ? { problem: 'must end in the name of the primary, such as valkey+sentinel://host:26379/mymaster' }
      : { value: { kind: form, primary, database: Number(digits) } }
  }
  if (form === 'cluster') {
    return /^0?$/.test(path)
      ? { value: { kind: form, primary: undefined, database: 0 } }
      : { problem: 'must end after the hosts: a cluster has only database 0' }
  }
  if (servers > 1) {
    return { problem: 'must name one server; for several, use valkey+sentinel:// or valkey+cluster://' }
  }
  return /^\d{0,5}$/.test(path)
    ? { value: { kind: 'single', primary: undefined, database: Number(path) } }
    : { problem: `must end after the port, or in the number of a database, such as ${EXAMPLE}/0` }
}

/** The text before the last part of a URL, cut at the `@`. */
function parseAccount(authority: string): Parsed<Pick<StoreAddress, 'user' | 'password'> & { host: string }> {
  const [, user, password, host = authority] = /^([^:@]*)(?::([^:@]+))?@(.*)$/.exec(authority) ?? []
  const empty = user === '' && password === undefined
  if (host.includes('@') || empty) return { problem: HOST_PROBLEM }
  try {
    return { value: { user: decoded(user), password: decoded(password), host } }
  } catch {
    return { problem: HOST_PROBLEM }
  }
}

/** Throws a `URIError` for an invalid escape. */
function decoded(text: string | undefined): string | undefined {
  return text === undefined || text === '' ? undefined : decodeURIComponent(text)
}

/** The node, or nothing if the text names none. */
function parseNode(text: string, defaultPort: number): readonly StoreNode[] {
  const { host = '', valid = false, digits = String(defaultPort) } = parseAuthority(text) ?? {}
  return valid && portProblem(digits, 1) === undefined ? [{ host, port: Number(digits) }] : []
}

/** `tokens.store`: `file`, `memory`, or the address of a shared store. */
export const tokenStoreField = text<'file' | 'memory' | StoreAddress>({
  default: 'file',
  // The URL of a shared store may hold its password.
  secret: true,
  type: '`file`, `memory`, or the URL of a shared store',
  must: STORE_PROBLEM,
  parse: (given) => (given === 'file' || given === 'memory' ? { value: given } : parseStoreUrl(given)),
})

const tls = section({
  ca: optional(path()),
  insecure: flag({ default: false }),
})

export const storeField = section({
  passwordFile: optional(path()),
  prefix: plainText('up to 64 letters, digits and . _ : -', {
    default: 'postern',
    problemOf: unless(/^[\w.:-]{1,64}$/, 'must be up to 64 letters, digits and . _ : -'),
  }),
  timeout: duration('10ms', '1m', { default: '1s' }),
  replicas: optional(integer(0, 10)),
  tls,
})

export type StoreConfig = ValueOf<typeof storeField>
