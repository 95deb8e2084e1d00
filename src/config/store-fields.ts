import { parseAuthority, portProblem, socketPathProblem } from './address.ts'
import { optional, section, type ValueOf } from './field.ts'
import { integer, path, plainText, text, unless } from './value-fields.ts'
import type { Parsed } from './yaml.ts'

/** A host and a port. An IPv6 address has no brackets. */
interface StoreNode {
  readonly host: string
  readonly port: number
}

/** Where a server listens: at a host and a port, or at a Unix socket. */
type ServerAddress = StoreNode | { readonly path: string }

/** The shared store that a URL names. User and password are decoded. */
export interface StoreAddress {
  readonly server: ServerAddress
  readonly database: number
  readonly tls: boolean
  readonly user: string | undefined
  readonly password: string | undefined
}

/** The server that a URL names, without its user and password: `host:6379`, `[2001:db8::1]:6379`, or the path of the socket. */
export function describeStore({ server }: StoreAddress): string {
  if ('path' in server) return server.path
  const { host, port } = server
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

const EXAMPLE = 'valkey://host:6379'

/** The error message for a wrong `tokens.store`. */
const STORE_PROBLEM = `must be file, memory, or the address of a shared store: ${EXAMPLE}, valkeys://host:6379 (TLS) or valkey+unix:/path; redis is the same as valkey`

const ESCAPES = 'in a user or password, write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23 and % as %25'
const HOST_PROBLEM = `must name one server as host, host:port or [IPv6]:port; ${ESCAPES}`

const SERVER_PORT = 6_379

/** Parses the address of a shared store. No problem quotes the text, which may hold a password. */
export function parseStoreUrl(text: string): Parsed<StoreAddress> {
  const [, secure, form, rest] = /^(?:valkey|redis)(s)?(?:\+(unix))?:([!-~]+)$/.exec(text) ?? []
  if (rest === undefined) return { problem: STORE_PROBLEM }
  if (/[?#]/.test(rest)) return { problem: `must have no query and no fragment; ${ESCAPES}` }
  if (form === 'unix') {
    return secure === undefined ? parseUnix(rest) : { problem: 'must not ask for TLS on a Unix socket' }
  }
  const [, authority, path = ''] = /^\/\/([^/]+)(?:\/(.*))?$/.exec(rest) ?? []
  if (authority === undefined) return { problem: `must have // and a host, such as ${EXAMPLE}` }
  const account = parseAccount(authority)
  if ('problem' in account) return account
  const { user, password, host } = account.value
  const server = parseServer(host)
  if (server === undefined) return { problem: HOST_PROBLEM }
  if (!/^\d{0,5}$/.test(path))
    return { problem: `must end after the port, or in the number of a database, such as ${EXAMPLE}/0` }
  return { value: { server, database: Number(path), tls: secure !== undefined, user, password } }
}

/** `/path`, or `//user:password@/path`. */
function parseUnix(rest: string): Parsed<StoreAddress> {
  const [, authority = '', path = rest] = /^\/\/([^/]*)(\/.*)$/.exec(rest) ?? []
  const account = parseAccount(authority)
  if ('problem' in account) return account
  const { user, password, host } = account.value
  const problem = host === '' ? socketPathProblem(path) : 'must name no host before the path of the socket'
  if (problem !== undefined) return { problem }
  return { value: { server: { path }, database: 0, tls: false, user, password } }
}

/** Splits the authority of a URL (RFC 3986 §3.2) at its `@`. */
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

/** Undefined if the text names no server. */
function parseServer(text: string): StoreNode | undefined {
  const { host = '', valid = false, digits = String(SERVER_PORT) } = parseAuthority(text) ?? {}
  return valid && portProblem(digits, 1) === undefined ? { host, port: Number(digits) } : undefined
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
})

export const storeField = section({
  passwordFile: optional(path()),
  prefix: plainText('up to 64 letters, digits and . _ : -', {
    default: 'postern',
    problemOf: unless(/^[\w.:-]{1,64}$/, 'must be up to 64 letters, digits and . _ : -'),
  }),
  replicas: integer(0, 10, { default: 0 }),
  tls,
})

export type StoreConfig = ValueOf<typeof storeField>
