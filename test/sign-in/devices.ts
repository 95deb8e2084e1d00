import { execFileSync, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import net from 'node:net'
import { join } from 'node:path'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { type Device, readBody, startDevice } from '../support/device.ts'
import { unusedPort } from '../support/raw.ts'
import { until } from '../support/redis.ts'

/** A device with a login. A test can change its behaviour by the properties. */
export interface LockedDevice {
  readonly device: Device
  readonly url: string
  user: string
  password: string
  /** How many requests with credentials it has received. */
  attempts: number
  /** How many of these were wrong. */
  refusals: number
}

const page = (response: ServerResponse, status: number, fields: Record<string, string | string[]> = {}) => {
  response.writeHead(status, fields)
  response.end(status === 200 ? 'from the device' : 'refused')
}

/** Starts a device that requires Basic credentials on every path except below `/open`. */
export async function startBasicDevice(): Promise<LockedDevice> {
  const device = await startDevice(async (request, response) => {
    await readBody(request)
    const given = request.headers.authorization
    if (request.url?.startsWith('/open') === true) return page(response, 200)
    if (given === undefined) return page(response, 401, { 'WWW-Authenticate': 'Basic realm="device"' })
    locked.attempts += 1
    const right = Buffer.from(`${locked.user}:${locked.password}`).toString('base64')
    if (given === `Basic ${right}` && request.url !== '/forbidden') return page(response, 200)
    locked.refusals += 1
    return page(response, 401, { 'WWW-Authenticate': 'Basic realm="device"' })
  })
  const locked: LockedDevice = {
    device,
    url: device.url,
    user: 'admin',
    password: 'näive: "x"',
    attempts: 0,
    refusals: 0,
  }
  return locked
}

export interface DigestDevice extends LockedDevice {
  /** The algorithms of its challenges; '' leaves the parameter out. */
  algorithms: readonly string[]
  qop: string | undefined
  /** The valid nonce. Every other one is stale. */
  nonce: string
  /** Whether its challenges say `stale`. */
  saysStale: boolean
  /** Accepts every nonce only once. */
  oneTime: boolean
  /** Calls every nonce stale and sends a new one. */
  alwaysStale: boolean
  /** Announces the next nonce in every response. */
  nextnonce: boolean
  charset: string
  userhash: boolean
  /** The parameters of all credentials that it accepted. */
  readonly accepted: Map<string, string>[]
}

/** Starts a device that checks every parameter of Digest credentials (RFC 7616) by an independent implementation. */
export async function startDigestDevice(): Promise<DigestDevice> {
  let lastCount = 0
  let countOf = ''
  const mint = (): string => randomBytes(12).toString('hex')

  const device = await startDevice(async (request, response) => {
    await readBody(request)
    const given = request.headers.authorization
    if (given === undefined) return challenge(response, false)
    locked.attempts += 1
    if (locked.alwaysStale) {
      locked.nonce = mint()
      return challenge(response, true)
    }
    const p = parametersOf(given)
    const isStale = p.get('nonce') !== locked.nonce
    if (!isRight(request, p)) {
      locked.refusals += 1
      return challenge(response, false)
    }
    if (isStale) return challenge(response, locked.saysStale)
    if (p.get('nonce') !== countOf) lastCount = 0
    countOf = p.get('nonce') ?? ''
    const count = Number.parseInt(p.get('nc') ?? '0', 16)
    if (locked.qop !== undefined && count <= lastCount) return challenge(response, locked.saysStale)
    lastCount = count
    locked.accepted.push(p)
    if (locked.oneTime) locked.nonce = mint()
    if (!locked.nextnonce) return page(response, 200)
    locked.nonce = mint()
    return page(response, 200, {
      'Authentication-Info': `rspauth="0", nextnonce="${locked.nonce}", qop=auth`,
    })
  })

  function challenge(response: ServerResponse, stale: boolean): void {
    const rest = [
      'realm="a \\"quoted\\" realm"',
      `nonce="${locked.nonce}"`,
      'opaque="a, b=\\"c\\""',
      ...(locked.qop === undefined ? [] : [`qop="${locked.qop}"`]),
      ...(locked.charset === '' ? [] : [`charset=${locked.charset}`]),
      ...(locked.userhash ? ['userhash=true'] : []),
      ...(stale ? ['stale=TRUE'] : []),
    ].join(', ')
    const lines = locked.algorithms.map((name) => `Digest ${rest}${name === '' ? '' : `, algorithm=${name}`}`)
    page(response, 401, { 'WWW-Authenticate': ['Basic realm="no, thanks"', ...lines] })
  }

  function isRight(request: IncomingMessage, p: Map<string, string>): boolean {
    const algorithm = p.get('algorithm') ?? ''
    const [, name = ''] = /^(.*?)(?:-sess)?$/i.exec(algorithm) ?? []
    const hash = { 'sha-256': 'sha256', 'sha-512-256': 'sha512-256' }[name.toLowerCase()] ?? 'md5'
    const h = (text: string): string => createHash(hash).update(text).digest('hex')
    const realm = 'a "quoted" realm'
    const user = locked.userhash ? h(`${locked.user}:${realm}`) : locked.user
    const nameGiven = p.get('username*') ?? p.get('username')
    const same =
      (locked.algorithms.includes(algorithm) || (algorithm === '' && locked.algorithms.includes(''))) &&
      (nameGiven === user || nameGiven === `UTF-8''${encodeURIComponent(user)}`) &&
      p.get('realm') === realm &&
      p.get('opaque') === 'a, b="c"' &&
      p.get('uri') === request.url &&
      p.get('qop') === (locked.qop === undefined ? undefined : 'auth')
    let ha1 = h(`${locked.user}:${realm}:${locked.password}`)
    if (algorithm.toLowerCase().endsWith('-sess')) ha1 = h(`${ha1}:${p.get('nonce')}:${p.get('cnonce')}`)
    const middle =
      locked.qop === undefined
        ? p.get('nonce')
        : [p.get('nonce'), p.get('nc'), p.get('cnonce'), p.get('qop')].join(':')
    return same && p.get('response') === h(`${ha1}:${middle}:${h(`${request.method}:${request.url}`)}`)
  }

  const locked: DigestDevice = {
    device,
    url: device.url,
    user: 'admin',
    password: 'näive: "x"',
    attempts: 0,
    refusals: 0,
    algorithms: ['MD5'],
    qop: 'auth-int, auth',
    nonce: mint(),
    saysStale: true,
    oneTime: false,
    alwaysStale: false,
    nextnonce: false,
    charset: '',
    userhash: false,
    accepted: [],
  }
  return locked
}

function parametersOf(credentials: string): Map<string, string> {
  // Node decodes field values as latin1; the sidecar sends UTF-8.
  const text = Buffer.from(credentials.replace(/^Digest /, ''), 'latin1').toString('utf8')
  const found = text.matchAll(/([\w*]+)=(?:"((?:[^"\\]|\\.)*)"|([^",\s]+))/g)
  return new Map(
    [...found].map(([, name = '', quoted, bare = '']) => [
      name,
      quoted === undefined ? bare : quoted.replace(/\\(.)/g, '$1'),
    ]),
  )
}

export interface FormDevice extends LockedDevice {
  /** The valid sessions. */
  readonly sessions: Set<string>
  /** Other cookies that every login sets, also a wrong one. */
  decoys: readonly string[]
  /** Answers a wrong login with a cookie and a page, like a right one. */
  lenient: boolean
  attributes: string
  /** Every form that it has received. */
  readonly forms: string[]
  /** How it requires a login: by a redirect or by 401. */
  asks: 'redirect' | '401'
  /** The status of every login, if set. */
  loginStatus: number | undefined
  /** A login waits for this promise. */
  gate: () => Promise<void>
}

/** `upstream.auth` for it, without the password. `settings`: further keys of the session. */
export const formAuth = (settings: object = {}) => ({
  kind: 'session',
  user: 'admin',
  session: { login: { path: '/login', form: { username: '$user', password: '$password' } }, ...settings },
})

/** Starts a device with a login form at `/login` and session cookies. */
export async function startFormDevice(): Promise<FormDevice> {
  const device = await startDevice(async (request, response) => {
    const body = (await readBody(request)).toString()
    const path = request.url?.split('?', 1)[0] ?? ''
    if (path === '/login' && request.method === 'POST') return login(body, response)
    if (path === '/login') return page(response, 200)
    const id = /(?:^|; )SID=([^;]*)/.exec(request.headers.cookie ?? '')?.[1] ?? ''
    if (path.startsWith('/open')) return page(response, 200)
    if (!locked.sessions.has(id)) {
      return locked.asks === '401'
        ? page(response, 401)
        : page(response, 302, { Location: '/login?from=here', 'Set-Cookie': 'SID=anonymous' })
    }
    if (path === '/rotate') {
      locked.sessions.delete(id)
      locked.sessions.add('rotated')
      return page(response, 200, { 'Set-Cookie': ['SID=rotated; Path=/', 'theme=dark'] })
    }
    if (path === '/logout') {
      locked.sessions.delete(id)
      return page(response, 200, { 'Set-Cookie': 'SID=gone; Max-Age=0; Path=/' })
    }
    return page(response, 200)
  })

  async function login(body: string, response: ServerResponse): Promise<void> {
    locked.forms.push(body)
    locked.attempts += 1
    await locked.gate()
    if (locked.loginStatus !== undefined) return page(response, locked.loginStatus)
    const form = new URLSearchParams(body)
    const right = form.get('username') === locked.user && form.get('password') === locked.password
    const id = randomBytes(8).toString('hex')
    const cookies = [...locked.decoys, `SID=${id}; HttpOnly${locked.attributes}`]
    if (right) {
      locked.sessions.add(id)
      return page(response, 302, { Location: '/home', 'Set-Cookie': cookies })
    }
    locked.refusals += 1
    if (locked.lenient) return page(response, 200, { 'Set-Cookie': cookies })
    return page(response, 302, { Location: '/login?error=1', 'Set-Cookie': cookies })
  }

  const locked: FormDevice = {
    device,
    url: device.url,
    user: 'admin',
    password: 'näive & 100% =+"x"',
    attempts: 0,
    refusals: 0,
    sessions: new Set(),
    decoys: [],
    lenient: false,
    attributes: '; Path=/',
    forms: [],
    asks: 'redirect',
    loginStatus: undefined,
    gate: async () => {},
  }
  return locked
}

export interface Lighttpd {
  readonly url: string
  /** Rewrites the user file. lighttpd reads it for every request. */
  setPassword(password: string): void
}

const REALM = 'real device'

/** Starts lighttpd, whose mod_auth protects every path. */
export async function startLighttpd(
  method: 'basic' | 'digest',
  algorithm: 'MD5' | 'SHA-256' | 'SHA-512-256' | 'MD5|SHA-256' = 'MD5',
): Promise<Lighttpd> {
  const folder = temporaryDirectory()
  const port = await unusedPort()
  const users = join(folder, 'users')
  mkdirSync(join(folder, 'www'))
  writeFileSync(join(folder, 'www', 'index.html'), 'from lighttpd')
  const setPassword = (password: string): void => {
    const line = (name: string): string => {
      const key = createHash(name).update(`admin:${REALM}:${password}`).digest('hex')
      return `admin:${REALM}:${key}\n`
    }
    const hashes = { MD5: ['md5'], 'SHA-256': ['sha256'], 'SHA-512-256': ['sha512-256'] }
    const names = algorithm === 'MD5|SHA-256' ? ['md5', 'sha256'] : hashes[algorithm]
    writeFileSync(users, method === 'basic' ? `admin:${password}\n` : names.map(line).join(''))
  }
  setPassword('secret')
  const file = join(folder, 'lighttpd.conf')
  const backend = method === 'basic' ? 'plain' : 'htdigest'
  writeFileSync(
    file,
    `server.modules = ("mod_auth", "mod_authn_file")
server.document-root = "${folder}/www"
server.bind = "127.0.0.1"
server.port = ${port}
index-file.names = ("index.html")
auth.backend = "${backend}"
auth.backend.${backend}.userfile = "${users}"
auth.require = ("/" => ("method" => "${method}", "realm" => "${REALM}", "require" => "valid-user"${
      method === 'digest' ? `, "algorithm" => "${algorithm}"` : ''
    }))
`,
  )
  execFileSync('lighttpd', ['-tt', '-f', file])
  const child = spawn('lighttpd', ['-D', '-f', file], { stdio: 'ignore' })
  closeLater(async () => {
    if (child.exitCode !== null) return
    const gone = once(child, 'exit')
    child.kill()
    await gone
  })
  await listening(port)
  return { url: `http://127.0.0.1:${port}`, setPassword }
}

/** Waits until the port accepts connections, by polling: another program sends no event. */
export async function listening(port: number): Promise<void> {
  await until(async () => {
    const socket = net.connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return true
    } finally {
      socket.destroy()
    }
  })
}
