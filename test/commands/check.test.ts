import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import type { CheckResult } from '../../src/commands/check/finding.ts'
import { hashPassword } from '../../src/password/key-derivation.ts'
import { folderToServe, startNginx } from '../devices/webdav-servers.ts'
import { runInProcess, type Surroundings } from '../process/in-process.ts'
import { prepareSite, type Run, runPostern, type Site } from '../process/serve.ts'
import { makeCertificate, temporaryDirectory } from '../support/certificate.ts'
import { stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { unusedPort } from '../support/raw.ts'
import { nextRequest, startRawDevice } from '../support/raw-device.ts'
import { HASHED_PASSWORD, startSidecar } from '../support/sidecar.ts'
import { needs, underFileModes } from '../support/tools.ts'
import { drip } from './drip.ts'
import { runCheck } from './run-check.ts'

let directory: string
let password: string

beforeEach(() => {
  directory = temporaryDirectory()
  password = join(directory, 'password')
  writeFileSync(password, 'hunter2\n')
})

/** Runs `check` with these settings, in place of usual ones. */
function check(...set: readonly string[]): Promise<Run> {
  const source = set.some((each) => each.startsWith('password.')) ? [] : [`password.file=${password}`]
  // The default ports may be in use, such as by the demo of another test.
  const addresses = ['listen', 'admin'].map((listener) => `${listener}.address=127.0.0.1:0`)
  const sets = [...source, 'listen.tls=off', ...addresses, `state_dir=${directory}`, ...set]
  return runInProcess(['check', ...sets.flatMap((each) => ['--set', each])])
}

describe('postern check', () => {
  it('tries everything in the configuration, and exits with 0', async () => {
    const device = await startDevice()
    const { code, stdout } = await check(`upstream.url=${device.url}`, 'upstream.headers.X-Key=hunter2')
    expect(stdout).not.toContain('hunter2')
    expect(stdout).not.toContain('state_dir:\n')
    expect(stdout).not.toMatch(/^upstream:$/m)
    expect(stdout).toMatch(/^ok {6}password source: readable$/m)
    expect(stdout).toMatch(
      /^ok {6}upstream headers: 1 set on every request; the head of a GET has \d+ bytes from curl, \d+ from Chromium$/m,
    )
    expect(stdout).toContain(`ok      device: ${device.url} answered 200`)
    expect(code).toBe(0)
  })

  it('H374 ends soon at a page that does not end, and says on a terminal what it waits for', async () => {
    const clock = stillClock()
    const begin = clock.monotonic()
    const device = await startDevice((_request, response) => drip(response, clock))
    const { configFile } = await prepareSite({ device })
    for (const [terminal, said] of [
      [true, 'Still waiting: device ...\n'],
      [false, ''],
    ] as const) {
      const args = ['check', '--config', configFile]
      const { code, stdout, stderr } = await runInProcess(args, { clock, terminal })
      expect([code, stderr]).toEqual([0, said])
      expect(stdout.replaceAll(/\s+/g, ' ')).toContain('its page does not end within 5 s')
    }
    expect(clock.monotonic() - begin).toBeLessThan(20_000)
  })

  it('prints the effective configuration last with --print, without its secrets', async () => {
    const config = { upstream: { headers: { 'X-Key': 'hunter2' } } }
    const site = await prepareSite({ config, password: HASHED_PASSWORD })
    const { code, stdout } = await site.postern('check', '--print')
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^Ready.*\nok .*\n\nlisten:\n.*X-Key: .?\*\*\*/s),
    ])
  })

  it('exits with 1 and names what does not work if `serve` would start nevertheless', async () => {
    const url = `http://127.0.0.1:${await unusedPort()}`
    const { code, stdout } = await check(`upstream.url=${url}`)
    expect(stdout).toMatch(/^FAILED {2}device: .+/m)
    expect(stdout).toMatch(/^ok {6}certificate: off/m)
    expect(code).toBe(1)
  })

  it.each(['file', 'htpasswd.file', 'shadow.file'])(
    'warns that other users can read password.%s, and exits with 0',
    async (key) => {
      const device = await startDevice()
      const users = join(directory, 'users')
      writeFileSync(users, `admin:${await hashPassword('hunter2')}\n`)
      for (const file of [password, users]) chmodSync(file, 0o644)
      const sets =
        key === 'file' ? [] : [`password.${key}=${users}`, `password.${key.replace('file', 'user')}=admin`]
      const { code, stdout } = await check(`upstream.url=${device.url}`, ...sets)
      const file = key === 'file' ? password : users
      expect(stdout).toContain(`WARNING password.${key}: ${file}: others can read it\n`)
      expect(stdout).toContain(`or replace it; chmod 0640 ${file}\n`)
      expect(code).toBe(0)
    },
  )

  it('exits with 2 if a state folder with a long path cannot be made and the self-signed certificate is stored there', async () => {
    const device = await startDevice()
    const locked = join(directory, 'locked')
    mkdirSync(locked, { mode: 0o500 })
    const sets = [`password.file=${password}`, `state_dir=${join(locked, 'x'.repeat(90))}`]
    const args = [...sets, `upstream.url=${device.url}`].flatMap((set) => ['--set', set])
    const { code, stdout } = await runPostern(['check', ...args], { under: underFileModes() })
    expect(stdout).toContain(`FAILED  state_dir: --set: ${locked} is not writable (EACCES)\n`)
    expect(code).toBe(2)
  })

  it('exits with 2 and one line for each problem of the configuration', async () => {
    const { code, stdout, stderr } = await check('upstream.url=ftp://x', 'limits.api.request=5')
    expect(stdout).toBe('')
    expect(stderr).toContain('upstream.url')
    expect(stderr).toContain('did you mean limits.api.requests?')
    expect(code).toBe(2)
  })

  it('H172 prints the bytes of the heads that the device gets, as it gets them', async () => {
    const sizes: number[] = []
    const device = await startRawDevice(async (peer) => {
      sizes.push((await nextRequest(peer)).length)
      peer.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    })
    const set = [`upstream.url=${device.url}`, 'upstream.reuse=never', 'upstream.headers.X-Key=hunter2']
    const bytesIn = ({ stdout }: Run) =>
      / has (\d+) bytes from curl, (\d+) from Chromium\n/.exec(stdout)?.slice(1).map(Number)
    const bytes = bytesIn(await check(...set))
    expect(sizes.slice(1, 3)).toEqual(bytes)
    expect(bytes?.[1]).toBeGreaterThan(800)
    const short = bytesIn(
      await check(
        ...set,
        ...['X-Forwarded-*', 'Via', 'X-Request-Id'].map((name) => `upstream.headers.${name}=null`),
        'upstream.headers.Sec-*=null',
        'upstream.headers.cookie=null',
      ),
    )
    expect(short?.[1]).toBeLessThan(512)
  })

  it('H172 finds in front of nginx that it compresses nothing for a proxy, and clients get the page compressed as it says', async () => {
    needs('nginx')
    const root = folderToServe()
    writeFileSync(join(root, 'index.html'), '<p>page</p>\n'.repeat(40_000))
    const url = (await startNginx(root, 'gzip on;')) ?? expect.fail('it did not start')
    expect((await check(`upstream.url=${url}`)).stdout).toContain('write upstream: {headers: {Via: null}}')
    const lengths: number[] = []
    for (const headers of [{}, { Via: null }]) {
      const sidecar = await startSidecar({ device: { url }, config: { upstream: { headers } } })
      const fields = ['Accept-Encoding', 'gzip']
      lengths.push((await sidecar.request({ token: await sidecar.token(), fields })).body.length)
    }
    expect(lengths).toEqual([480_000, expect.toSatisfy((length: number) => length < 10_000)])
  })

  it.each(['api', '/a#b', '/ü', ''])(
    'H273 refuses %j, which is no path, before it asks anything',
    async (page) => {
      const device = await startDevice()
      const refused = await runCheck(device.url, [], page)
      expect(refused).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('PATH must be a path of one service'),
      })
      expect(device.requests).toEqual([])
    },
  )

  it.each(['up', '/a b', '/a\r\nX: y', '/up#x', '', '/cam/../up'])('refuses to post to %j', async (path) => {
    const device = await startDevice()
    const route = [`upstream.routes./cam/.url=${device.url}`]
    expect(await runCheck(device.url, route, '--uploads', path)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^postern check: --uploads must be a path of one service/),
    })
    expect(device.requests).toEqual([])
  })

  it('says of a port in use that it cannot see by whom, if it may not ask the running sidecar', async () => {
    const site = await prepareSite()
    const { url } = await site.serveHere()
    site.configure({ listen: { address: new URL(url).host } })
    const sockets = readdirSync(site.stateDir).filter((name) => name.endsWith('.sock'))
    for (const name of sockets) chmodSync(join(site.stateDir, name), 0)
    const args = ['check', '--config', site.configFile]
    const { stdout, code } = await runPostern(args, { under: underFileModes() })
    expect(sockets).toHaveLength(1)
    expect(stdout).toContain('is in use, and only root and the user of the sidecar can see by whom\n')
    expect(code).toBe(0)
  })
})

interface Report {
  readonly code: number
  readonly checks: readonly CheckResult[]
  readonly configuration: Readonly<Record<string, unknown>> | null
}

/** Runs `check --json`. */
async function reportOf(site: Site, ...flags: readonly string[]): Promise<Report> {
  const { code, stdout } = await site.postern('check', '--json', ...flags)
  return { code, ...JSON.parse(stdout) }
}

const named = ({ checks }: Report, name: string): CheckResult | undefined =>
  checks.find((each) => each.name === name)

/** Without it, `check` warns of the default. */
const SLOW = { limits: { wrong_passwords: 'slow' } }

describe('H368 the first line of check', () => {
  const first = ({ stdout }: Run): string => /^.*\n/.exec(stdout)?.[0] ?? ''
  const ready = (): Promise<Site> => prepareSite({ config: SLOW, password: HASHED_PASSWORD })

  it('says that Postern can start, and the command for it where the program was started', async () => {
    const { configFile: config, directory: folder } = await ready()
    const line = async (args: readonly string[], around: Surroundings): Promise<string> =>
      first(await runInProcess(['check', ...args], { env: {}, ...around }))
    const flag = ['--config', config]
    const start = 'Ready: start it with'
    expect(await line(flag, {})).toBe(`${start} postern serve --config ${config}\n`)
    expect(await line(flag, { typed: './postern' })).toBe(`${start} ./postern serve --config ${config}\n`)
    expect(await line([], { folder, user: process.getuid?.() })).toBe(`${start} postern serve\n`)
    const shipped = { defaultConfig: config, systemd: '/nowhere' }
    expect(await line([], shipped)).toBe(`${start} postern serve\n`)
    expect(await line([], { ...shipped, systemd: folder })).toBe(`${start} systemctl start postern\n`)
    expect(await line(flag, { ...shipped, systemd: folder })).toBe(`${start} systemctl start postern\n`)
    expect(await line(['--set', 'realm=x'], { ...shipped, systemd: folder })).toBe(
      `${start} postern serve --set realm=...\n`,
    )
  })

  it('says that it runs, once it runs; and what a reload does', async () => {
    const site = await ready()
    const { url } = await site.serveHere()
    site.configure({ listen: { address: new URL(url).host } })
    expect(first(await site.postern('check'))).toBe('Ready: Postern is running\n')
    expect(first(await site.postern('check', '--reload'))).toBe('Ready: a reload takes this configuration\n')
  })

  it('counts the warnings, and the things to mend, which come first', async () => {
    const site = await prepareSite({ config: { enforce: false } })
    expect(first(await site.postern('check'))).toMatch(/^Ready, with 3 warnings: start it with /)
    site.configure({
      upstream: { url: `http://127.0.0.1:${await unusedPort()}` },
      state_dir: site.passwordFile,
    })
    const { stdout } = await site.postern('check')
    const words: readonly string[] = stdout.match(/^(?! {8})\S+/gm) ?? []
    expect(words.slice(0, 4)).toEqual(['2', 'FAILED', 'FAILED', 'WARNING'])
    expect(words.lastIndexOf('WARNING')).toBeLessThan(words.indexOf('ok'))
    expect(stdout).toMatch(/^2 things to mend:\nFAILED {2}state_dir: /)
  })

  it('counts the mistakes of a configuration that does not load', async () => {
    const site = await prepareSite()
    site.configure({ upstraem: {}, realm: 7 })
    const { code, stderr } = await site.postern('check')
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/^2 things to mend:\n(postern check: .*\n){2}$/),
    ])
    const quiet = await site.postern('check', '--quiet')
    expect(quiet.stderr).toMatch(/^(postern check: .*\n){2}$/)
  })
})

describe('H107 the report of check', () => {
  it('is one JSON document with every check and the effective configuration, without its secrets', async () => {
    const device = await startDevice()
    const config = { upstream: { headers: { 'X-Key': 'hunter2' } }, ...SLOW }
    const site = await prepareSite({ device, config, password: HASHED_PASSWORD })
    const report = await reportOf(site)
    expect(report.code).toBe(0)
    expect(report.checks.map(({ name, result }) => [name, result])).toEqual([
      ['password source', 'ok'],
      ['certificate', 'ok'],
      ['state_dir', 'ok'],
      ['memory', 'ok'],
      ['listen.address', 'ok'],
      ['admin.address', 'ok'],
      ['upstream headers', 'ok'],
      ['places', 'ok'],
      ['device', 'ok'],
      ['signing in', 'ok'],
    ])
    expect(named(report, 'device')).toEqual({
      name: 'device',
      result: 'ok',
      message: `${device.url} answered 200`,
      meaning: null,
      remedy: null,
    })
    expect(report.configuration).toMatchObject({ upstream: { url: device.url, headers: { 'X-Key': '***' } } })
  })

  it('lists the problems of a configuration that does not load, and exits with 2', async () => {
    const site = await prepareSite()
    writeFileSync(site.configFile, 'upstream:\n  url: device\npassword: {file: x}\n')
    const report = await reportOf(site)
    expect([report.code, report.configuration]).toEqual([2, null])
    expect(report.checks).toEqual([
      {
        name: 'configuration',
        result: 'failed',
        message: expect.stringContaining('postern.yaml:2: upstream.url: must be '),
        meaning: expect.stringContaining('serve does not start'),
        remedy: expect.any(String),
      },
    ])
  })

  it('says of every problem what it means and what to do', async () => {
    const gone = `http://127.0.0.1:${await unusedPort()}`
    const site = await prepareSite({ device: { url: gone } })
    site.configure({
      ...SLOW,
      listen: { address: '192.0.2.1:8443', tls: { cert: '/nowhere', key: '/nowhere' } },
      password: { file: '/nowhere' },
      state_dir: site.passwordFile,
      upstream: {
        headers: { X: { file: '/nowhere' } },
        tls: { ca: '/nowhere' },
        auth: { kind: 'basic', user: 'admin', password: { file: '/nowhere' } },
      },
      admin: { address: 'unix:/nowhere/admin.sock' },
    })
    const { checks, code } = await reportOf(site)
    expect(code).toBe(2)
    const problems = checks.filter(({ result }) => result !== 'ok')
    expect(problems.map(({ name }) => name)).toEqual([
      'password source',
      'certificate',
      'state_dir',
      'listen.address',
      'admin.address',
      'upstream headers',
      'device',
      'signing in',
    ])
    for (const { message, meaning, remedy } of problems) {
      for (const part of [message, meaning, remedy]) expect(part).toMatch(/^\S.{10,}[^.]$/)
    }
  })

  it('as text has the hints in one indented line below the problem; with --quiet nothing else', async () => {
    const port = await unusedPort()
    const device = { url: `http://127.0.0.1:${port}` }
    const site = await prepareSite({ device, config: SLOW, password: HASHED_PASSWORD })
    const { stdout, code } = await site.postern('check', '--quiet')
    expect(stdout).toBe(
      `FAILED  device: ${site.configFile}:1: upstream.url: http://127.0.0.1:${port} did not respond (connection_refused)\n` +
        '        clients get an error for every request but those for tokens; nothing listens there: switch the device on, or correct host and port in upstream.url\n',
    )
    expect(code).toBe(1)
    const json = await reportOf(site, '--quiet')
    expect(json.checks.map(({ name }) => name)).toEqual(['device'])
  })

  it('--quiet prints nothing if all is well', async () => {
    const { stdout, stderr, code } = await (
      await prepareSite({ config: SLOW, password: HASHED_PASSWORD })
    ).postern('check', '--quiet')
    expect({ stdout, stderr, code }).toEqual({ stdout: '', stderr: '', code: 0 })
  })
})

it('H76 --reload tests what a reload reads, and neither the password nor the device', async () => {
  const port = await unusedPort()
  const site = await prepareSite({ device: { url: `http://127.0.0.1:${port}` } })
  site.configure({ password: { file: '/nowhere' } })
  expect(await site.postern('check', '--reload', '--quiet')).toMatchObject({
    code: 0,
    stdout: '',
    stderr: '',
  })
  site.configure({ upstream: { headers: { 'X-Key': { file: '/nowhere' } } } })
  expect(await site.postern('check', '--reload', '--quiet')).toMatchObject({
    code: 2,
    stdout: expect.stringMatching(/^FAILED {2}upstream headers: .*\/nowhere/),
  })
  site.configure({ upstream: { headers: undefined }, listen: { tls: { cert: '/no', key: '/no' } } })
  expect(await site.postern('check', '--reload', '--quiet')).toMatchObject({
    code: 2,
    stdout: expect.stringMatching(/^FAILED {2}certificate: /),
  })
  site.configure({ listen: undefined, upstraem: {} })
  expect(await site.postern('check', '--reload', '--quiet')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('upstraem'),
  })
})

it.each<readonly [string, (files: { cert: string; key: string }) => void, string]>([
  [
    'a swapped pair',
    ({ cert, key }) => {
      const texts = [readFileSync(key), readFileSync(cert)] as const
      writeFileSync(cert, texts[0])
      writeFileSync(key, texts[1])
    },
    'CERT holds the private key and KEY the certificate: swap the two',
  ],
  [
    'a certificate in DER',
    ({ cert }) => {
      const base64 = readFileSync(cert, 'utf8').replace(/-----.*-----/g, '')
      writeFileSync(cert, Buffer.from(base64, 'base64'))
    },
    'CERT is binary (DER) and must be PEM: convert it with openssl x509 -inform der -in CERT -out NEW',
  ],
])('H108 %s: serve and check name the key, the file and the remedy', async (_what, spoil, says) => {
  const { certFile: cert, keyFile: key } = await makeCertificate()
  spoil({ cert, key })
  const site = await prepareSite({ config: { listen: { tls: { cert, key } } } })
  const problem = `listen.tls: ${says.replaceAll('CERT', cert).replaceAll('KEY', key)}`
  const found = named(await reportOf(site), 'certificate')
  expect(found).toMatchObject({ result: 'failed', message: `${site.configFile}:1: ${problem}` })
  expect(await site.postern('serve')).toMatchObject({
    code: 2,
    stderr: `postern serve: ${found?.message}; ${found?.remedy}\n`,
  })
})
