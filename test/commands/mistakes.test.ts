import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkCommand } from '../../src/commands/check.ts'
import { insecureSettings } from '../../src/config/insecure-settings.ts'
import { loadConfig } from '../../src/config/load.ts'
import { prepareSite, type Site } from '../process/serve.ts'
import { closeLater } from '../support/cleanup.ts'
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
    'a header file below a file',
    {
      config: ({ passwordFile }) => ({ upstream: { headers: { X: { file: `${passwordFile}/x` } } } }),
      says: 'upstream headers: FILE:1: upstream.headers.X: cannot read DIR/password/x: DIR/password is not a folder',
      remedy: 'move it away, or name another folder',
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
  let out = ''
  const stdout = { write: (text: string) => (out += text) }
  await checkCommand({ config: site.configFile, set: [], quiet: true }, { stdout, stderr: stdout, env: {} })
  return out.split(/^(?=FAILED|WARNING)/m).filter((line) => line.startsWith('FAILED'))
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

const INSECURE = {
  listen: { address: '0.0.0.0:0', tls: 'off' },
  admin: { address: '[::]:0' },
  enforce: false,
}

describe('H107 an insecure setting', () => {
  const KEYS = ['listen.tls', 'admin.address', 'enforce', 'password.file']

  it('is a warning of check and a line at the start, with its meaning and remedy', async () => {
    const site = await prepareSite({ config: INSECURE })
    const { stdout, code } = await site.postern('check', '--quiet')
    expect(code).toBe(0)
    const warned = stdout
      .split(/^(?=WARNING)/m)
      .map((each) => /^WARNING (\S+): .+\n {8}.+; .+\n$/.exec(each)?.[1])
    expect(warned).toEqual(KEYS)

    const launched = site.launch()
    await launched.waitForLog('listening')
    const lines = launched.log.filter(({ msg }) => msg.startsWith('insecure: '))
    expect(lines.map(({ level, key }) => [level, key])).toEqual(KEYS.map((key) => [40, key]))
    for (const { reason, remedy } of lines)
      expect([reason, remedy]).toEqual([expect.any(String), expect.any(String)])
    await launched.stop()
  })

  it.each(['[::0]:0', '[0:0::0]:0', '[::ffff:0.0.0.0]:0'])(
    'that is an admin listener on all addresses, written %s, is found',
    (address) => {
      const yaml = { upstream: { url: 'http://127.0.0.1' }, password: { file: '/x' }, admin: { address } }
      const config = loadConfig({
        file: { path: 'postern.yaml', text: JSON.stringify(yaml) },
        env: {},
        sets: [],
      })
      expect(insecureSettings(config).map(({ key }) => key)).toEqual(['admin.address'])
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
    const routes = { '/x/': upstream }
    const yaml = { upstream: { ...upstream, routes }, password: { file: '/x' } }
    const file = { path: 'postern.yaml', text: JSON.stringify(yaml) }
    const found = insecureSettings(loadConfig({ file, env: {}, sets: [] }))
    const keys = ['upstream.share.paths', 'upstream.routes./x/.share.paths']
    expect(found.map((each) => [each.key, each.reason])).toEqual(
      reason === undefined ? [] : keys.map((key) => [key, reason]),
    )
  })

  it('H190 that is a login for browsers without TLS is found, unless a proxy may encrypt', () => {
    const found = (listen: object): readonly string[] => {
      const site = {
        upstream: { url: 'http://192.0.2.7' },
        password: { file: '/x' },
        browser: { login: 'on' },
      }
      const text = JSON.stringify({ ...site, listen })
      const config = loadConfig({ file: { path: 'postern.yaml', text }, env: {}, sets: [] })
      return insecureSettings(config).map(({ key }) => key)
    }
    const off = { tls: 'off', insecure: true }
    expect(found({ ...off, address: '0.0.0.0:80' })).toEqual(['browser.login'])
    expect(found({ ...off, address: '127.0.0.1:80' })).toEqual([])
    expect(found({ ...off, address: '0.0.0.0:80', trusted_proxies: ['192.0.2.1'] })).toEqual([])
    expect(found({ address: '0.0.0.0:443' })).toEqual([])
  })

  it('that is listen.tls: off is silenced by listen.insecure; a hash and a safe address need nothing', async () => {
    const listen = { ...INSECURE.listen, insecure: true }
    const site = await prepareSite({ config: { listen }, password: HASHED_PASSWORD })
    expect(await site.postern('check', '--quiet')).toMatchObject({ code: 0, stdout: '' })
    const served = await site.serve()
    expect(served.log.filter(({ level }) => level >= 40)).toEqual([])
  })

  it('that is a password in plain text is needed if Postern signs in with that file', async () => {
    const site = await prepareSite()
    const file = join(site.directory, 'device-password')
    writeFileSync(file, 'hunter2\n', { mode: 0o600 })
    const auth = { basic: { user: 'admin', password: { file } } }
    site.configure({ upstream: { auth }, password: { file } })
    const { stdout } = await site.postern('check')
    expect(stdout).not.toContain('plain text')
  })
})
