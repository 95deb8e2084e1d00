import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { CheckResult } from '../../src/commands/check/finding.ts'
import { checkCommand } from '../../src/commands/check.ts'
import { pinOf } from '../../src/device/target.ts'
import { makeSelfSigned } from '../../src/listen/self-signed.ts'
import { prepareSite, runPostern, type Site } from '../process/serve.ts'
import { makeCertificate, temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { startDevice } from '../support/device.ts'
import { ANY, opensslCertificate, startOpenssl } from '../support/openssl-server.ts'
import { unusedPort } from '../support/raw.ts'
import { HASHED_PASSWORD } from '../support/sidecar.ts'

interface Report {
  readonly code: number
  readonly checks: readonly CheckResult[]
  readonly configuration: Readonly<Record<string, unknown>> | null
}

/** Runs `check --json`. */
async function check(site: Site, options: { readonly quiet?: boolean } = {}): Promise<Report> {
  let out = ''
  const stdout = { write: (text: string) => (out += text) }
  const io = { stdout, stderr: stdout, env: {} }
  const code = await checkCommand({ config: site.configFile, set: [], json: true, ...options }, io)
  return { code, ...JSON.parse(out) }
}

const named = ({ checks }: Report, name: string): CheckResult | undefined =>
  checks.find((each) => each.name === name)

/** Holds a free port of 127.0.0.1. */
async function takenPort(): Promise<number> {
  const holder = createServer().listen(0, '127.0.0.1')
  await once(holder, 'listening')
  closeLater(() => void holder.close())
  return (holder.address() as AddressInfo).port
}

function storePair({ stateDir }: Site, { cert, key }: { readonly cert: string; readonly key: string }): void {
  mkdirSync(join(stateDir, 'tls'), { recursive: true })
  writeFileSync(join(stateDir, 'tls', 'cert.pem'), cert)
  writeFileSync(join(stateDir, 'tls', 'key.pem'), key)
}

/** Without it, `check` warns of the default. */
const SLOW = { limits: { wrong_passwords: 'slow' } }

describe('H107 the report of check', () => {
  it('is one JSON document with every check and the effective configuration, without its secrets', async () => {
    const device = await startDevice()
    const config = { upstream: { headers: { 'X-Key': 'hunter2' } }, ...SLOW }
    const site = await prepareSite({ device, config, password: HASHED_PASSWORD })
    const report = await check(site)
    expect(report.code).toBe(0)
    expect(report.checks.map(({ name, result }) => [name, result])).toEqual([
      ['password source', 'ok'],
      ['certificate', 'ok'],
      ['state_dir', 'ok'],
      ['memory', 'ok'],
      ['listen.address', 'ok'],
      ['admin.address', 'ok'],
      ['upstream headers', 'ok'],
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

  it('says of an address that this machine does not have that serve waits for it', async () => {
    const site = await prepareSite({ password: HASHED_PASSWORD })
    site.configure({ ...SLOW, listen: { address: '192.0.2.1:8443' }, admin: { address: '192.0.2.1:9464' } })
    const report = await check(site)
    expect(report.code).toBe(1)
    for (const [name, who] of [
      ['listen.address', 'no client can connect'],
      ['admin.address', 'no program can ask the sidecar there'],
    ] as const)
      expect(named(report, name)).toMatchObject({
        result: 'failed',
        message: expect.stringContaining('this machine has no address 192.0.2.1'),
        meaning: `serve waits until it has the address, and ${who} meanwhile`,
      })
  })

  it('warns of a device with a login of its own, unless upstream.auth or upstream.headers answers it', async () => {
    const device = await startDevice((_request, response) => {
      response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="camera"' }).end()
    })
    const site = await prepareSite({ device, config: SLOW, password: HASHED_PASSWORD })
    expect(named(await check(site), 'device')).toEqual({
      name: 'device',
      result: 'warning',
      message: `${device.url} answered 401, which asks for a Basic login of its own`,
      meaning: expect.stringContaining('their Authorization field is for Postern'),
      remedy: expect.stringContaining('set upstream.auth: {kind: basic, '),
    })
    const set = { headers: { authorization: 'Basic eDp5' } }
    site.configure({ ...SLOW, upstream: { url: device.url, ...set } })
    expect(named(await check(site), 'device')).toMatchObject({
      result: 'ok',
      message: `${device.url} answered 401`,
    })
  })

  it('lists the problems of a configuration that does not load, and exits with 2', async () => {
    const site = await prepareSite()
    writeFileSync(site.configFile, 'upstream:\n  url: device\npassword: {file: x}\n')
    const report = await check(site)
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
    const { checks, code } = await check(site)
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
    const json = await check(site, { quiet: true })
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

describe('the certificate', () => {
  it('is reported with its names and its end', async () => {
    const { certFile: cert, keyFile: key } = await makeCertificate('x', { notAfter: new Date('2090-01-01') })
    const site = await prepareSite({ config: { listen: { tls: { cert, key } } } })
    expect(named(await check(site), 'certificate')).toMatchObject({
      result: 'ok',
      message: `${cert} matches its key; for localhost, 127.0.0.1; valid until 2090-01-01T00:00:00.000Z`,
    })
  })

  const YEAR = 31_557_600_000

  it.each([
    ['expired', -50, 'warning', 'start Postern, which renews it'],
    ['not valid before', 2, 'failed', 'set the clock of this machine'],
  ])('that Postern made and that is %s', async (state, years, result, remedy) => {
    const site = await prepareSite({ config: { listen: { tls: 'auto' } } })
    const pair = makeSelfSigned('host', ['localhost'], Date.now() + years * YEAR)
    storePair(site, pair)
    const found = named(await check(site), 'certificate')
    expect(found).toMatchObject({ result, remedy, message: expect.stringContaining(state) })
    expect(readFileSync(join(site.stateDir, 'tls', 'cert.pem'), 'utf8')).toBe(pair.cert)
  })

  it('in the state folder that Postern did not make and that has expired: the remedy is to remove it', async () => {
    const site = await prepareSite({ config: { listen: { tls: 'auto' } } })
    storePair(site, await makeCertificate('x', { keyType: 'rsa', notAfter: new Date('2020-01-01') }))
    expect(named(await check(site), 'certificate')).toMatchObject({
      result: 'failed',
      remedy: expect.stringContaining(`remove ${site.stateDir}/tls and start Postern`),
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
    const found = named(await check(site), 'certificate')
    expect(found).toMatchObject({ result: 'failed', message: `${site.configFile}:1: ${problem}` })
    expect(await site.postern('serve')).toMatchObject({
      code: 2,
      stderr: `postern serve: ${found?.message}; ${found?.remedy}\n`,
    })
  })
})

describe('H106 an address', () => {
  it('that the running Postern of the same state_dir uses is fine', async () => {
    const site = await prepareSite()
    const sidecar = await site.serve()
    const [listen, admin] = [sidecar.url, sidecar.adminUrl].map((url) => ({ address: new URL(url).host }))
    site.configure({ listen, admin })
    const report = await check(site)
    for (const [name, at] of [
      ['listen.address', listen],
      ['admin.address', admin],
    ] as const) {
      expect(named(report, name)).toMatchObject({
        result: 'ok',
        message: `${at?.address} is in use by the running Postern of ${site.stateDir}, as it should be`,
      })
    }
    expect(report.code).toBe(0)
  })

  it('on a Unix socket of the running Postern is fine', async () => {
    const path = join(temporaryDirectory(), 'public.sock')
    const site = await prepareSite({ config: { listen: { address: `unix:${path}` } } })
    const launched = site.launch()
    await launched.waitForLog('listening')
    expect(named(await check(site), 'listen.address')).toMatchObject({ result: 'ok' })
  })

  it('that another program uses fails, whether Postern runs or not', async () => {
    const port = await takenPort()
    const site = await prepareSite()
    await site.serve()
    for (const prepared of [site, await prepareSite()]) {
      prepared.configure({ listen: { address: `127.0.0.1:${port}` } })
      const report = await check(prepared)
      expect(named(report, 'listen.address')).toEqual({
        name: 'listen.address',
        result: 'failed',
        message: `${prepared.configFile}:1: cannot listen on 127.0.0.1:${port}: the port is in use (EADDRINUSE)`,
        meaning: 'serve does not start',
        remedy: `ss -tanp 'sport = :${port}' shows by what: stop that program, wait a minute if it is only TIME-WAIT, or use another port`,
      })
      expect(report.code).toBe(1)
    }
  })

  it('of another host fails, although the running Postern uses the same port', async () => {
    const site = await prepareSite()
    const { port } = new URL((await site.serve()).url)
    const holder = createServer().listen(Number(port), '127.0.0.2')
    closeLater(() => void holder.close())
    await once(holder, 'listening')
    site.configure({ listen: { address: `127.0.0.2:${port}` } })
    expect(named(await check(site), 'listen.address')).toMatchObject({ result: 'failed' })
    site.configure({ listen: { address: `0.0.0.0:${port}` } })
    expect(named(await check(site), 'listen.address')).toMatchObject({ result: 'ok' })
  })

  it('of a socket that another program listens on fails', async () => {
    const path = join(temporaryDirectory(), 'taken.sock')
    const holder = createServer().listen(path)
    closeLater(() => void holder.close())
    await once(holder, 'listening')
    const site = await prepareSite({ config: { admin: { address: `unix:${path}` } } })
    expect(named(await check(site), 'admin.address')).toMatchObject({
      result: 'failed',
      message: `${site.configFile}:1: cannot listen on unix:${path}: the socket is in use by another program (EADDRINUSE)`,
      remedy: expect.stringContaining(`ss -lxp src ${path}`),
    })
  })
})

describe('the device', () => {
  it('H109 with a self-signed certificate: the remedy is the line with its pin', async () => {
    const device = await startDevice(undefined, { tls: await makeCertificate() })
    const found = named(await check(await prepareSite({ device })), 'device')
    expect(found?.message).toMatch(
      / did not respond \(tls_certificate_error\): the certificate of https:.* is self-signed/,
    )
    expect(found?.remedy).toMatch(/then write under upstream: tls: \{pin: sha256\/[\w+/]{43}=\}/)
  })

  it('H168 with TLS of another decade: the remedy is the line to write, for a route too', async () => {
    const pair = opensslCertificate('-newkey', 'rsa:1024', '-sha1')
    const server = await startOpenssl(pair, '-tls1', '-cipher', ANY)
    const url = `https://127.0.0.1:${server?.port}`
    const config = { upstream: { routes: { '/old/': { url } } } }
    const site = await prepareSite({ device: { url }, config })
    const found = (await check(site)).checks.filter(({ name }) => name.startsWith('device'))
    const pin = pinOf(new X509Certificate(readFileSync(pair.certFile)).raw)
    expect(found).toMatchObject(
      ['upstream', 'upstream.routes./old/'].map((key) => ({
        result: 'failed',
        message: expect.stringMatching(/: the device speaks only older versions of TLS; /),
        remedy: `compare the fingerprint with that on the device, then write under ${key}: tls: {min_version: TLSv1, weak: true, pin: ${pin}}`,
      })),
    )
  })

  it('H109 that is spoken to in the wrong scheme: the remedy is the right URL', async () => {
    const device = await startDevice(undefined, { tls: await makeCertificate() })
    const url = device.url.replace('https:', 'http:')
    expect(named(await check(await prepareSite({ device: { url } })), 'device')?.remedy).toBe(
      `set upstream.url to ${device.url}`,
    )
  })

  it.each([
    [301, { Location: 'https://device/' }, 'a redirect to https', 'set upstream.url to the https address'],
    [503, {}, 'answered 503', 'set upstream.health.path to a page that works'],
  ])('that answers %i gets a warning', async (status, fields, message, remedy) => {
    const server = createHttpServer((_, response) => response.writeHead(status, fields).end())
    await once(server.listen(0, '127.0.0.1'), 'listening')
    closeLater(() => void server.close())
    const { port } = server.address() as AddressInfo
    const report = await check(await prepareSite({ device: { url: `http://127.0.0.1:${port}` } }))
    expect(report.code).toBe(0)
    expect(named(report, 'device')).toMatchObject({
      result: 'warning',
      message: expect.stringContaining(message),
      remedy: expect.stringContaining(remedy),
    })
  })
})

it('postern check --help says what the lines mean', async () => {
  const { stdout, code } = await runPostern(['check', '--help'])
  expect(code).toBe(0)
  for (const text of ['--json', '--quiet', 'WARNING', 'Exit codes']) expect(stdout).toContain(text)
})
