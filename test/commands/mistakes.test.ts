import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { hardeningPage } from '../../deploy/build/hardening.ts'
import { configWarnings } from '../../src/compose/config-warnings.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'
import { UNSAFE_FILES, UNSAFE_SETTINGS, type UnsafeSetting, unsafeSettings } from '../../src/config/unsafe.ts'
import { startHook } from '../password/hook.ts'
import { prepareSite, type Site } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { makeNames, onTrial } from '../support/passwords.ts'
import { HASHED_PASSWORD, type YamlPart } from '../support/sidecar.ts'

interface Mistake {
  readonly config: (site: Site) => YamlPart
  /** The line of `check` that fails, without `FAILED`; FILE is the configuration, DIR its folder. */
  readonly says: string
  readonly remedy: string
}

const CERTIFICATE = 'remove listen.tls for a self-signed certificate'
const RELATIVE = `there is no such file (the working directory is ${process.cwd()})`

/** Wrong files and folders: `check` and `serve` say the same of each. */
const MISTAKES: readonly (readonly [mistake: string, Mistake])[] = [
  [
    'a password file that is not there',
    {
      config: () => ({ password: { file: './none' } }),
      says: `password source: FILE:1: password.file: ./none: ${RELATIVE}`,
      remedy: 'postern hash-password > ./none writes a usable one',
    },
  ],
  [
    'a folder as password file',
    {
      config: ({ directory }) => ({ password: { file: directory } }),
      says: 'password source: FILE:1: password.file: DIR: it is a folder',
      remedy: 'name the file in it',
    },
  ],
  [
    'a certificate that is not there',
    {
      config: () => ({ listen: { tls: { cert: '/nowhere/c.pem', key: '/nowhere/k.pem' } } }),
      says: 'certificate: FILE:1: listen.tls.cert: cannot read /nowhere/c.pem: there is no such file',
      remedy: `correct the path, or ${CERTIFICATE}`,
    },
  ],
  [
    'a password file in place of a certificate',
    {
      config: ({ passwordFile }) => ({ listen: { tls: { cert: passwordFile, key: passwordFile } } }),
      says: 'certificate: FILE:1: listen.tls: DIR/password holds no certificate in PEM; DIR/password holds no private key in PEM',
      remedy: `correct the files, or ${CERTIFICATE}`,
    },
  ],
  [
    'an authority that is not there',
    {
      config: () => ({ upstream: { tls: { ca: '/nowhere/ca.pem' } } }),
      says: 'device: FILE:1: upstream.tls.ca: cannot read /nowhere/ca.pem: there is no such file',
      remedy: 'create the file, or correct the path',
    },
  ],
  [
    'a password for the device that is not there',
    {
      config: () => ({
        upstream: { auth: { kind: 'basic', user: 'admin', password: { file: '/nowhere' } } },
      }),
      says: 'signing in: FILE:1: upstream.auth.password.file: cannot read /nowhere: there is no such file',
      remedy: 'create the file, or correct the path',
    },
  ],
  [
    'a header file below a file',
    {
      config: ({ passwordFile }) => ({ upstream: { headers: { X: { file: `${passwordFile}/x` } } } }),
      says: 'upstream headers: FILE:1: upstream.headers.X: cannot read DIR/password/x: DIR/password is not a folder',
      remedy: 'move it away, or name another folder',
    },
  ],
  [
    'a header file behind `..` of a missing folder',
    {
      config: ({ passwordFile, directory }) => ({
        upstream: { headers: { X: { file: `${directory}/none/../${basename(passwordFile)}` } } },
      }),
      says: 'upstream headers: FILE:1: upstream.headers.X: cannot read DIR/none/../password: there is no such file',
      remedy: 'create the file, or correct the path',
    },
  ],
  [
    'a state_dir that is a file',
    {
      config: ({ passwordFile }) => ({ state_dir: passwordFile, listen: { tls: 'auto' } }),
      says: 'state_dir: FILE:1: DIR/password is not a folder',
      remedy: 'move it away, or name another folder',
    },
  ],
  ...['link', 'link/state'].map((path): readonly [string, Mistake] => [
    `${path} as state_dir, where the link leads to nothing`,
    {
      config({ directory }) {
        symlinkSync('nowhere', join(directory, 'link'))
        return { state_dir: join(directory, path), listen: { tls: 'auto' } }
      },
      says: 'state_dir: FILE:1: DIR/link is a link to nothing',
      remedy: 'correct the link, or name another path',
    },
  ]),
  [
    'a state_dir where the kernel takes no folder',
    {
      config: () => ({ state_dir: '/proc/x', listen: { tls: 'auto' } }),
      says: 'state_dir: FILE:1: nothing can be created in /proc',
      remedy: 'name another folder',
    },
  ],
]

/** The failed lines of `check`, each with its hints. */
async function failures(site: Site): Promise<readonly string[]> {
  const { stdout } = await site.postern('check', '--quiet')
  return stdout.split(/^(?=FAILED|WARNING)/m).filter((line) => line.startsWith('FAILED'))
}

describe('H108 check and serve say where the fault is and what to do, in the same words, about', () => {
  it.each(MISTAKES)('%s', async (_mistake, { config, says, remedy }) => {
    const site = await prepareSite({ password: HASHED_PASSWORD })
    site.configure(config(site))
    const line = says.replaceAll('FILE', site.configFile).replaceAll('DIR', site.directory)
    const failed = await failures(site)
    expect(failed).toHaveLength(1)
    expect(failed[0]?.split('\n')).toEqual([`FAILED  ${line}`, expect.stringMatching(/^ {8}\S.*; /), ''])
    expect(failed[0]).toContain(`; ${remedy}\n`)
    const [, place, reason] = /^[^:]+: (\S+: )(?:[a-z_.X]+: )?(.*)$/.exec(line) ?? []
    const served = await site.postern('serve')
    expect(served.code).toBe(2)
    expect(served.stderr.split('\n')).toEqual([expect.stringContaining(`postern serve: ${place}`), ''])
    expect(served.stderr).toContain(`${reason}; ${remedy}\n`)
  })
})

it('H107 a socket of the device that is not there is no matter of the network', async () => {
  const site = await prepareSite({ device: { url: 'http+unix:/nowhere/device.sock' } })
  expect(await failures(site)).toEqual([
    `FAILED  device: ${site.configFile}:1: upstream.url: /nowhere/device.sock did not respond (destination_unavailable): there is no such file\n` +
      '        clients get an error for every request but those for tokens; start what listens on the socket, let the user that runs Postern write to it, or correct upstream.url\n',
  ])
})

it('H108 a port that only a connection holds is not said to be of another program', async () => {
  const site = await prepareSite()
  const peer = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => peer.once('listening', resolve))
  closeLater(() => void peer.close())
  // No program listens on the port of this side. A connection in TIME-WAIT holds its port in the same way.
  const socket = connect({ port: (peer.address() as AddressInfo).port, host: '127.0.0.1' })
  await new Promise((resolve) => socket.once('connect', resolve))
  closeLater(() => void socket.destroy())
  const port = socket.localPort
  site.configure({ listen: { address: `127.0.0.1:${port}` } })
  expect(await failures(site)).toEqual([
    expect.stringContaining(
      `listen.address: ${site.configFile}:1: cannot listen on 127.0.0.1:${port}: the port is in use (EADDRINUSE)\n`,
    ),
  ])
})

it('a folder in place of a password file is not said to be made safe by chmod', async () => {
  const site = await prepareSite()
  const folder = join(site.directory, 'folder')
  mkdirSync(folder)
  chmodSync(folder, 0o755)
  site.configure({ password: { file: folder } })
  const { stdout } = await site.postern('check')
  expect(stdout).toContain('it is a folder')
  expect(stdout).not.toContain('chmod')
})

/** A configuration that gives up nothing but that. */
function configOf(given: object): Config {
  const listen = 'listen' in given ? given.listen : {}
  const usual = { password: { file: '/x' }, limits: { wrong_passwords: 'slow' } }
  const text = JSON.stringify({
    upstream: { url: 'http://192.0.2.7' },
    ...usual,
    ...given,
    listen: { address: 'auto', ...Object(listen) },
  })
  return loadConfig({ file: { path: 'postern.yaml', text }, env: {}, sets: [] })
}

const warningsIn = (given: object): readonly UnsafeSetting[] => unsafeSettings(configOf(given), [])

const keysIn = (given: object): readonly string[] => warningsIn(given).map(({ key }) => key)

const INSECURE = {
  listen: { address: '0.0.0.0:0', tls: 'off' },
  admin: { address: '[::]:0' },
  enforce: false,
}

describe('H107 an insecure setting', () => {
  const KEYS = ['listen.tls', 'admin.address', 'enforce', 'limits.wrong_passwords', 'password.file']

  it('is a warning of check and a line at the start, with its meaning and remedy', async () => {
    const site = await prepareSite({ config: INSECURE })
    const { stdout, code } = await site.postern('check', '--quiet')
    expect(code).toBe(0)
    const warned = stdout
      .split(/^(?=WARNING)/m)
      .map((each) => /^WARNING (\S+): .+\n {8}.+; .+\n$/.exec(each)?.[1])
    expect(warned).toEqual(KEYS)

    const launched = await site.serveHere()
    const lines = launched.log.filter(({ msg }) => msg.startsWith('insecure: '))
    expect(lines.map(({ level, key }) => [level, key])).toEqual(KEYS.map((key) => [40, key]))
    for (const { reason, remedy } of lines)
      expect([reason, remedy]).toEqual([expect.any(String), expect.any(String)])
    await launched.stop()
  })

  it('H299 that is an allow on trial is a warning of check, and lines at the start and at a reload, with the name', async () => {
    const names = makeNames({ admin: undefined, monitor: 'read', probe: 'read' })
    const site = await prepareSite({ config: onTrial(names, 'monitor') })
    const { stdout, code } = await site.postern('check', '--quiet')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^WARNING passwords\.1\.enforce: .*false, for monitor\n {8}.+; .+\n/m)
    const launched = await site.serveHere()
    const lines = () => launched.log.filter(({ msg }) => msg.includes('is on trial'))
    expect(lines().map(({ level, msg }) => [level, msg])).toEqual([
      [40, 'the allow of monitor is on trial: requests outside it reach the device'],
    ])
    site.configure(onTrial(names, 'monitor', 'probe'))
    await expect
      .poll(() => lines().map(({ key }) => key))
      .toEqual(['passwords.1.enforce', 'passwords.2.enforce'])
    await launched.stop()
  })

  it('H299 enforce: false without an allow is an error, as nothing is tried', () => {
    const entry = { name: 'admin', file: '/x', enforce: false }
    expect(() => warningsIn({ password: undefined, passwords: [entry] })).toThrow(
      'passwords.0.enforce: must be left out without allow, which it would try',
    )
  })

  it.each(['[::0]:0', '[0:0::0]:0', '[::ffff:0.0.0.0]:0'])(
    'that is an admin listener on all addresses, written %s, is found',
    (address) => {
      expect(keysIn({ admin: { address } })).toEqual(['admin.address'])
    },
  )

  it.each([
    ['/', '/ is every path, also those that act'],
    ['/api/reboot', '/api/reboot looks like an action'],
    ['/cgi/setParam', '/cgi/setParam looks like an action'],
    ['/relay-toggle/', '/relay-toggle/ looks like an action'],
    ['/settings', undefined],
    ['/api/status', undefined],
  ])('that is %s in upstream.share is found, if it looks like an action', (path, reason) => {
    const upstream = { url: 'http://127.0.0.1', share: { paths: ['/fine', path] } }
    const found = warningsIn({ upstream })
    const keys = ['upstream.share.paths']
    expect(found.map((each) => [each.key, each.reason])).toEqual(
      reason === undefined ? [] : keys.map((key) => [key, reason]),
    )
  })

  it('H190 that is a login for browsers without TLS is found, unless a proxy on another machine may encrypt', () => {
    const found = (listen: object): readonly string[] => keysIn({ listen, browser: { login: 'on' } })
    const off = { tls: 'off' }
    expect(found({ ...off, address: '0.0.0.0:80' })).toEqual(['listen.tls', 'browser.login'])
    expect(found({ ...off, address: '127.0.0.1:80' })).toEqual([])
    expect(found({ ...off, address: '0.0.0.0:80', trusted_proxies: ['192.0.2.1'] })).toEqual([])
    expect(found({ ...off, address: '0.0.0.0:80', trusted_proxies: ['127.0.0.1'] })).toEqual([
      'listen.tls',
      'browser.login',
    ])
    expect(found({ ...off, address: 'fd:3' })).toEqual(['listen.tls', 'browser.login'])
    expect(found({ address: '0.0.0.0:443' })).toEqual([])
  })

  it('that is listen.tls: off is none behind a trusted proxy; a hash and a safe address need nothing', async () => {
    const listen = { ...INSECURE.listen, trusted_proxies: ['192.0.2.1'] }
    const config = { listen, limits: { wrong_passwords: 'slow' } }
    const site = await prepareSite({ config, password: HASHED_PASSWORD })
    expect(await site.postern('check', '--quiet')).toMatchObject({ code: 0, stdout: '' })
    const served = await site.serveHere()
    expect(served.log.filter(({ level }) => level >= 40)).toEqual([])
  })

  it('that is a password in plain text is needed if Postern signs in with that file', async () => {
    const site = await prepareSite()
    const file = join(site.directory, 'device-password')
    writeFileSync(file, 'hunter2\n', { mode: 0o600 })
    const auth = { kind: 'basic', user: 'admin', password: { file } }
    site.configure({ upstream: { auth }, password: { file } })
    const { stdout } = await site.postern('check')
    expect(stdout).not.toContain('plain text')
  })
})

/** Settings, and the keys that are warned of. Each rule has a row that it finds. */
const OPEN_DOORS: readonly (readonly [what: string, given: object, keys: readonly string[]])[] = [
  ['an address that nobody has chosen', { listen: { address: undefined } }, ['listen.address']],
  ['the same address, chosen', { listen: { address: '0.0.0.0:8443' } }, []],
  ['no TLS', { listen: { address: '0.0.0.0:80', tls: 'off' } }, ['listen.tls']],
  [
    'a login page without TLS',
    { listen: { address: '0.0.0.0:80', tls: 'off' }, browser: { login: 'on' } },
    ['listen.tls', 'browser.login'],
  ],
  [
    'every address as trusted proxy',
    { listen: { trusted_proxies: ['0.0.0.0/0'] } },
    ['listen.trusted_proxies'],
  ],
  ['the admin listener on all addresses', { admin: { address: '[::]:0' } }, ['admin.address']],
  [
    'a page password that crosses the network',
    { admin: { address: '192.0.2.7:0', password_file: '/x' } },
    ['admin.tls'],
  ],
  [
    'a page password on a descriptor that may be open',
    { admin: { address: 'fd:3', password_file: '/x' } },
    ['admin.tls'],
  ],
  ['a page password over TLS', { admin: { address: '192.0.2.7:0', password_file: '/x', tls: 'on' } }, []],
  ['a page password on loopback', { admin: { address: '127.0.0.1:0', password_file: '/x' } }, []],
  ['a gate that only observes', { enforce: false }, ['enforce']],
  [
    'an allow on trial',
    {
      password: undefined,
      passwords: [{ name: 'probe', file: '/x', allow: 'read', enforce: false }],
    },
    ['passwords.0.enforce'],
  ],
  [
    'a shared path that acts',
    { upstream: { url: 'http://192.0.2.7', share: { paths: ['/reboot'] } } },
    ['upstream.share.paths'],
  ],
  ['/ in public_paths', { public_paths: ['/'] }, ['public_paths']],
  ['/ among public_paths', { public_paths: ['/login', '/'] }, ['public_paths']],
  ['another public path', { public_paths: ['/static/', '/login'] }, []],
  ['no wait after wrong passwords', { limits: { wrong_passwords: 'off' } }, ['limits.wrong_passwords']],
  ['no wait by default', { limits: {} }, ['limits.wrong_passwords']],
  ['no wait behind the login page', { limits: {}, browser: { login: 'on' } }, ['limits.wrong_passwords']],
  ['tokens of ten years', { tokens: { refresh_lifetime: '3650d' } }, ['tokens.refresh_lifetime']],
  [
    'access tokens of a year',
    { tokens: { access_lifetime: '365d', refresh_lifetime: '365d' } },
    ['tokens.access_lifetime', 'tokens.refresh_lifetime'],
  ],
  ['tokens of three months', { tokens: { access_lifetime: '7d', refresh_lifetime: '90d' } }, []],
  [
    'a year without hearing of revocations',
    { tokens: { store: 'valkey://127.0.0.1', offline_grace: '365d' } },
    ['tokens.offline_grace'],
  ],
  ['the same without a shared store', { tokens: { offline_grace: '365d' } }, []],
  [
    'a device with any certificate',
    {
      upstream: {
        url: 'https://192.0.2.7',
        tls: { insecure: true },
        routes: { '/cam/': { url: 'https://192.0.2.8', tls: { insecure: true, weak: true } } },
      },
    },
    ['upstream.tls.insecure', 'upstream.routes./cam/.tls.insecure'],
  ],
  [
    'an origin with a wildcard',
    { cors: { origins: ['https://a.example', 'https://*.example'] } },
    ['cors.origins'],
  ],
  ['origins without one', { cors: { origins: ['https://a.example', 'capacitor://localhost'] } }, []],
  ['an old device', { upstream: { url: 'https://192.0.2.7', tls: { weak: true } } }, []],
]

describe('H224 an open door', () => {
  it.each(OPEN_DOORS)('%s is a warning', (_what, given, keys) => {
    expect(keysIn(given)).toEqual(keys)
  })

  it('each row for settings has one in OPEN_DOORS that it finds', () => {
    const configs = OPEN_DOORS.map(([, given]) => configOf(given))
    const unproved = UNSAFE_SETTINGS.filter(({ when }) => !configs.some((config) => when(config).length > 0))
    expect(unproved.map(({ key }) => key)).toEqual([])
  })

  it('tls.insecure with weak says both', () => {
    const upstream = { url: 'https://192.0.2.7', tls: { insecure: true, weak: true } }
    const reason = 'true, with weak: true, so old ciphers are taken, too'
    expect(warningsIn({ upstream })).toMatchObject([{ reason }])
  })

  it.each<[proxies: readonly string[], isWide: boolean]>([
    [['0.0.0.0/0'], true],
    [['::/0'], true],
    [['::ffff:0:0/96'], true],
    [['0.0.0.0/1', '128.0.0.0/1'], true],
    [['192.0.2.1', '64.0.0.0/8'], true],
    [Array.from({ length: 256 }, (_, at) => `8.${at}.0.0/16`), true],
    [['2000::/3'], true],
    [['2001::/17', '2001:8000::/17'], true],
    [['203.0.113.0/24', '203.0.113.0/25'], false],
    [['64.0.0.0/9', '64.0.0.0/10', '64.1.2.3'], false],
    [['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7', 'unix'], false],
    [['2001:db8::/32'], false],
    [[], false],
  ])('%j as trusted proxies: %s', (proxies, isWide) => {
    const found = keysIn({ listen: { trusted_proxies: proxies } })
    expect(found).toEqual(isWide ? ['listen.trusted_proxies'] : [])
  })
})

describe('H225 a password that protects little', () => {
  const HASHES = {
    sha1: '{SHA}87u9ZqY9S/F0eUBXjsPQEDUw4h0=',
    apr1: '$apr1$Zb5B.oC2$pxh.zGgBdCaVJdTWz3GbI/',
    md5: '$1$saltsalt$qjXMvbEw8oaL.CzflDtaK/',
  }

  /** The warnings about password files that hold these lines: the one of `password`, of a name, and of a viewer. */
  async function found(line: string, config: YamlPart = {}): Promise<readonly string[]> {
    const site = await prepareSite({ password: HASHED_PASSWORD })
    const file = join(site.directory, 'stored')
    writeFileSync(file, `${line}\n`, { mode: 0o600 })
    const limits = { wrong_passwords: 'slow' }
    site.configure({ limits, password: { file }, ...config })
    const { stdout } = await site.postern('check', '--quiet')
    return stdout
      .split(/^(?=WARNING)/m)
      .filter((each) => each.startsWith('WARNING'))
      .map((each) => each.replaceAll(site.directory, 'DIR'))
  }

  /** Lines of a password file, and what is warned of. Each rule has a row that it finds. */
  const LINES: readonly (readonly [what: string, line: string, says: readonly RegExp[]])[] = [
    ['one letter', 'x', [/plain text/, /has fewer than 8 characters/]],
    ['a usual one', 'PassWord1', [/plain text/, /is one of the usual ones/]],
    ['one letter many times', 'aaaaaaaaaaaa', [/plain text/, /is one of the usual ones/]],
    ['SHA-1', HASHES.sha1, [/SHA-1.*\n.*guessing it is cheap.*postern hash-password/]],
    ['MD5 of Apache', HASHES.apr1, [/an MD5 hash.*\n.*guessing it is cheap.*postern hash-password/]],
    ['MD5 of crypt(3)', HASHES.md5, [/an MD5 hash/]],
    ['crypt(3) with few rounds', `$5$rounds=1000$salt$${'a'.repeat(43)}`, [/fewer than 5000 rounds/]],
    ['argon2id of no cost', '$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0', [/of low cost/]],
    ['scrypt of no cost', '$scrypt$ln=1,r=8,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0', [/of low cost/]],
    [
      'a bare MD5',
      '2ab96390c7dbe3439de74d0c9b0b1767',
      [/plain text/, /looks like a bare hash \(32 hexadecimal digits\), and is taken as the password itself/],
    ],
    ['a line of htpasswd', `jo:${HASHES.apr1}`, [/plain text/, /a line of an htpasswd or shadow file/]],
    ['an LDAP scheme in lower case', '{ssha}c2FsdHNhbHRzYWx0', [/plain text/, /its scheme in lower case/]],
    ['a blank at its end', 'correct horse ', [/plain text/, /begins or ends with a blank/]],
    ['a good hash', HASHED_PASSWORD, []],
  ]

  it.each(LINES)('%s is a warning', async (_what, line, says) => {
    const warnings = await found(line)
    expect(warnings).toEqual(says.map((each) => expect.stringMatching(each)))
    for (const each of warnings)
      expect(each).toMatch(/^WARNING password\.file: DIR\/stored: .+\n {8}.+; .+\n$/)
  })

  it('each row for files has one in LINES that it finds', async () => {
    const file = join(temporaryDirectory(), 'stored')
    const config = configOf({ password: { file } })
    const found = new Set<string>()
    for (const [, line] of LINES) {
      writeFileSync(file, `${line}\n`)
      chmodSync(file, 0o644)
      for (const { meaning } of await configWarnings(config)) found.add(meaning)
    }
    const { socket } = await startHook()
    chmodSync(socket, 0o666)
    for (const { meaning } of await configWarnings(configOf({ password: { socket } }))) found.add(meaning)
    const open = temporaryDirectory()
    chmodSync(open, 0o777)
    for (const { meaning } of await configWarnings(configOf({ state_dir: open }))) found.add(meaning)
    // The modes of the file, of the socket and of the folder are the last rows.
    expect(UNSAFE_FILES.filter(({ meaning }) => !found.has(meaning))).toEqual([])
  })

  it('is found in passwords, in htpasswd and shadow files, and for the live page', async () => {
    const folder = temporaryDirectory()
    const files = { plain: 'correct horse', users: `jo:${HASHES.apr1}`, page: 'x' }
    for (const [name, text] of Object.entries(files))
      writeFileSync(join(folder, name), `${text}\n`, { mode: 0o600 })
    const [users, user] = [join(folder, 'users'), 'jo']
    const warnings = await found('unused', {
      password: undefined,
      passwords: [
        { name: 'one', file: join(folder, 'plain') },
        { name: 'two', htpasswd: { file: users, user } },
        { name: 'three', shadow: { file: users, user } },
      ],
      admin: { address: '127.0.0.1:0', password_file: join(folder, 'page') },
    })
    expect(warnings.map((each) => /^WARNING (\S+):.*: (.*)\n/.exec(each)?.slice(1))).toEqual([
      ['passwords.0.file', 'it holds the password in plain text'],
      ['passwords.1.htpasswd.file', 'it holds an MD5 hash'],
      ['passwords.2.shadow.file', 'it holds an MD5 hash'],
      ['admin.password_file', 'it holds the password in plain text'],
      ['admin.password_file', 'the password has fewer than 8 characters'],
    ])
    const who = warnings.flatMap((each) => /every (\w+) has to log in again/.exec(each)?.[1] ?? [])
    expect(who).toEqual(['client', 'viewer'])
  })
})

it('H361 a socket of the password hook that everybody can connect to is a warning, and none that a group can', async () => {
  const { socket } = await startHook()
  const found = async (mode: number) => {
    chmodSync(socket, mode)
    return (
      await configWarnings(configOf({ limits: { wrong_passwords: 'slow' }, password: { socket } }))
    ).map(({ key, file, reason }) => [key, file, reason])
  }
  expect(await found(0o660)).toEqual([])
  expect(await found(0o666)).toEqual([['password.socket', socket, 'others can connect to it']])
})

it('H224 docs/hardening.md lists what check warns of: run `npm run hardening` when this fails', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/hardening.md'), 'utf8')
  expect(page).toBe(hardeningPage(page))
  for (const { wanted } of [...UNSAFE_SETTINGS, ...UNSAFE_FILES]) expect(page).toContain(` | ${wanted} | `)
})
