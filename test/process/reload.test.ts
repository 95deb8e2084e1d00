import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import tls from 'node:tls'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Certificate, makeCertificate } from '../support/certificate.ts'
import { connect } from '../support/client.ts'
import type { Connection } from '../support/message.ts'
import type { YamlPart } from '../support/sidecar.ts'
import { openWebSocket } from '../support/websocket.ts'
import { prepareSite, replaceFile, type Serving, type Site } from './serve.ts'
import { duringStart } from './starting.ts'
import { DOWNLOAD_SIZE, type Held, holdResponses } from './streams.ts'

const RELOADED = 'configuration reloaded'
const NOT_RELOADED = 'configuration not reloaded: the previous one stays in effect'
const AFTER_RESTART = 'these keys take effect after a restart'

type Result = 'success' | 'failure'
const reloads = (sidecar: Serving, result: Result): Promise<number> =>
  sidecar.metric('postern_config_reloads_total', `result="${result}"`)

/** Calls `act` and waits until it has caused one reload with this result. */
async function expectReload(sidecar: Serving, result: Result, act: () => void): Promise<void> {
  const before = await reloads(sidecar, result)
  act()
  await expect.poll(() => reloads(sidecar, result), { interval: 20 }).toBe(before + 1)
}

/** The common name of the certificate that a new connection gets. */
function servedName(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const socket = tls.connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN))
      socket.destroy()
    })
    socket.once('error', reject)
  })
}

/** A sidecar with an open connection of each kind. */
interface Running {
  readonly site: Site
  readonly sidecar: Serving
  readonly held: Held
  readonly token: string
  /** Checks that these connections are still open and work. */
  expectConnected(): Promise<void>
}

async function startRunning(config: YamlPart, certificate: Certificate): Promise<Running> {
  const { certFile: cert, keyFile: key } = certificate
  const site = await prepareSite({ transport: 'tls', config: { ...config, listen: { tls: { cert, key } } } })
  const held = holdResponses(site.device)
  const sidecar = await site.serveHere()
  const { url } = sidecar
  const { access_token: token } = await sidecar.grant()
  const fields = ['Authorization', `Bearer ${token}`]
  const kept: readonly Connection[] = [
    await connect({ transport: 'tls', url }),
    await connect({ transport: 'h2', url }),
  ]
  const { socket } = await openWebSocket(url, { token })
  async function expectConnected(): Promise<void> {
    for (const connection of kept) expect((await connection.send({ fields })).status).toBe(200)
    const echoed = new Promise((resolve) => socket.once('message', resolve))
    socket.send('still there?')
    await echoed
  }
  await expectConnected()
  return { site, sidecar, held, token, expectConnected }
}

it('H76 a change of configuration or certificate right after the start takes effect', async () => {
  const [certificate, other] = await Promise.all([makeCertificate('first'), makeCertificate('second')])
  const { certFile: cert, keyFile: key } = certificate
  const site = await prepareSite({ transport: 'tls', config: { listen: { tls: { cert, key } } } })
  const sidecar = await site.serveHere() // the sidecar has just read its files
  replaceFile(key, other.key)
  replaceFile(cert, other.cert)
  site.configure({ limits: { api: { requests: 1234 } } })
  await expect.poll(() => servedName(sidecar.url)).toBe('second')
  const limit = async (): Promise<unknown> => (await sidecar.request({})).header('x-ratelimit-limit')
  await expect.poll(limit).toBe('1234')
})

it('SIGHUP before the sidecar listens causes a reload and does not end the process', async () => {
  const site = await prepareSite()
  const sidecar = await duringStart(site, ({ signal }) => signal('SIGHUP'))
  await sidecar.waitForLog('listening')
  await sidecar.waitForLog(RELOADED)
})

it('SIGHUP before the code of the sidecar is loaded does not end the process', async () => {
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
  const site = await prepareSite({ command: () => [process.execPath, main] })
  const early = `import { registerHooks } from 'node:module'
registerHooks({
  load(url, context, next) {
    if (url.endsWith('/commands/serve.ts')) process.kill(process.pid, 'SIGHUP')
    return next(url, context)
  },
})`
  const sidecar = site.launch({
    env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(early)}` },
  })
  await sidecar.waitForLog('listening')
})

describe('A reload', () => {
  let running: Running
  let secretFile: string

  beforeAll(async () => {
    const certificate = await makeCertificate()
    secretFile = join(certificate.certFile, '..', 'firmware-key')
    writeFileSync(secretFile, 'first secret\n')
    running = await startRunning(
      { upstream: { headers: { 'X-Firmware-Key': { file: secretFile } } } },
      certificate,
    )
  })

  it('by SIGHUP reads the files that the configuration names, and a running download completes', async () => {
    const { sidecar, site, held, token, expectConnected } = running
    const connection = await sidecar.connect()
    const path = '/download/reload'
    const download = connection.start({ path, fields: ['Authorization', `Bearer ${token}`] })
    await download.waitFor('first piece')
    writeFileSync(secretFile, 'second secret\n')
    await expectReload(sidecar, 'success', () => sidecar.signal('SIGHUP'))
    await sidecar.waitForLog(RELOADED, ({ by }) => by === 'signal')
    await sidecar.request({ path: '/after', token })
    expect(site.device.requests.at(-1)?.header('x-firmware-key')).toBe('second secret')
    const rest = Buffer.alloc(DOWNLOAD_SIZE - 'first piece\n'.length, 'x')
    held.get(path)?.end(rest)
    expect((await download.response).body).toHaveLength(DOWNLOAD_SIZE)
    expect((await connection.send({ fields: ['Authorization', `Bearer ${token}`] })).status).toBe(200)
    await expectConnected()
  })

  it('by a change of the file puts limits, lifetimes, headers, realm and status codes into effect', async () => {
    const { sidecar, site, token, expectConnected } = running
    const connection = await sidecar.connect()
    const fields = ['Authorization', `Bearer ${token}`]
    const before = await connection.send({ fields })
    expect(before.header('x-ratelimit-limit')).toBe('1000000')
    await expectReload(sidecar, 'success', () =>
      site.configure({
        limits: { api: { requests: 5000, window: '30s' } },
        tokens: { access_lifetime: '10m' },
        upstream: { headers: { 'X-Added': 'by a reload' } },
        realm: 'another realm',
        status_codes: 'http',
        oauth: { revocation_path: '/oauth/revoke' },
      }),
    )
    const after = await connection.send({ fields })
    expect(after.header('x-ratelimit-limit')).toBe('5000')
    expect(site.device.requests.at(-1)?.header('x-added')).toBe('by a reload')
    expect(await sidecar.grant()).toMatchObject({ expires_in: 600 })
    const refused = await sidecar.request({})
    expect(refused.header('www-authenticate')).toBe('Bearer realm="another realm"')
    const wrongMethod = await sidecar.request({ path: '/oauth/token' })
    expect([wrongMethod.status, wrongMethod.header('allow')]).toEqual([405, 'POST'])
    expect((await sidecar.postToken({ token: 'unknown' }, { path: '/oauth/revoke' })).status).toBe(200)
    await expectConnected()
    const line = await sidecar.waitForLog(RELOADED, ({ changed }) => (changed as unknown[]).length > 0)
    expect([...(line.changed as string[])].sort()).toEqual([
      'limits.api.requests',
      'limits.api.window',
      'oauth.revocation_path',
      'realm',
      'status_codes',
      'tokens.access_lifetime',
      'upstream.headers.X-Added',
    ])
  })

  it('changes the log level', async () => {
    const { sidecar, site, token } = running
    await sidecar.request({ path: '/before', token })
    await expectReload(sidecar, 'success', () => site.configure({ log: { level: 'warn' } }))
    await sidecar.request({ path: '/meanwhile', token })
    await expectReload(sidecar, 'success', () => site.configure({ log: { level: 'info' } }))
    await sidecar.request({ path: '/afterwards', token })
    await sidecar.waitForLog('request', ({ path }) => path === '/afterwards')
    const paths = sidecar.logged('request').map(({ path }) => path)
    expect(paths).toContain('/before')
    expect(paths).not.toContain('/meanwhile')
  })

  it('lists the keys that still wait for a restart, and applies the others', async () => {
    const { sidecar, site, token, expectConnected } = running
    const listed = (): unknown[] => sidecar.logged(AFTER_RESTART).map(({ keys }) => keys)
    await expectReload(sidecar, 'success', () =>
      site.configure({
        tokens: { store: 'memory' },
        state_dir: join(site.directory, 'another-state'),
        limits: { api: { requests: 6000 } },
      }),
    )
    expect((await sidecar.request({ token })).header('x-ratelimit-limit')).toBe('6000')
    await sidecar.waitForLog(AFTER_RESTART)
    expect(listed()).toEqual([['tokens.store', 'state_dir']])
    // Another change does not put them into effect.
    await expectReload(sidecar, 'success', () => site.configure({ limits: { api: { requests: 7000 } } }))
    await sidecar.waitForLog(AFTER_RESTART, (line) => sidecar.logged(AFTER_RESTART)[1] === line)
    expect(listed()[1]).toEqual(listed()[0])
    // With their values of the start they no longer wait.
    await expectReload(sidecar, 'success', () =>
      site.configure({ tokens: { store: undefined }, state_dir: site.stateDir }),
    )
    await expectReload(sidecar, 'success', () => site.configure({ realm: 'another' }))
    await sidecar.waitForLog(RELOADED, ({ changed }) => String(changed) === 'realm')
    expect(listed()).toHaveLength(2)
    await expectConnected()
  })

  it('H76 of an invalid configuration changes nothing and logs the reason', async () => {
    const { sidecar, site, token, expectConnected } = running
    const limit = async (): Promise<string | undefined> =>
      (await sidecar.request({ token })).header('x-ratelimit-limit')
    const before = await limit()
    const good = site.configFile
    const invalid: readonly [why: RegExp, act: () => void][] = [
      [/postern\.yaml/, () => replaceFile(good, 'limits: {api: {requests: 1}')],
      [/limits\.api\.requests/, () => site.configure({ limits: { api: { requests: -1 } } })],
      [/no_such_key/, () => site.configure({ limits: { api: { requests: 2 } }, no_such_key: 1 })],
      [
        /no-such-secret/,
        () =>
          site.configure({
            no_such_key: undefined,
            upstream: { headers: { 'X-Other': { file: join(site.directory, 'no-such-secret') } } },
          }),
      ],
      [/there is no such file/, () => rmSync(good)],
      [/upstream\.url/, () => replaceFile(good, '# nothing but a comment')],
    ]
    const problems = (): string[] => sidecar.logged(NOT_RELOADED).map((line) => String(line.problems))
    for (const [, act] of invalid) {
      await expectReload(sidecar, 'failure', act)
      expect(await limit()).toBe(before)
    }
    await sidecar.waitForLog(NOT_RELOADED, () => problems().length === invalid.length)
    for (const [i, [why]] of invalid.entries()) expect(problems()[i]).toMatch(why)
    await expectConnected()
    // A valid configuration takes effect again.
    await expectReload(sidecar, 'success', () =>
      site.configure({
        limits: { api: { requests: 4000 } },
        upstream: { headers: { 'X-Other': undefined } },
      }),
    )
    expect(await limit()).toBe('4000')
  })
})

describe('H76 A certificate', () => {
  let running: Running
  let current: Certificate
  let other: Certificate

  beforeAll(async () => {
    ;[current, other] = await Promise.all([makeCertificate('first'), makeCertificate('second')])
    running = await startRunning({}, current)
  })

  it('that does not match its key is refused with the reason, and the current one stays in use', async () => {
    const { sidecar, expectConnected } = running
    const rsa = await makeCertificate('rsa', { keyType: 'rsa' })
    const half = (pem: string): string => pem.slice(0, pem.length / 2)
    const { certFile, keyFile } = current
    const invalid: readonly (readonly [RegExp, file: string, content: string | undefined])[] = [
      [/do not make a usable pair: the key belongs to another certificate/, certFile, other.cert],
      [/do not make a usable pair: the key is RSA, the certificate is for EC/, keyFile, rsa.key],
      [/cert\.pem is empty/, certFile, ''],
      [/key\.pem is empty/, keyFile, ''],
      [/cert\.pem is incomplete/, certFile, half(current.cert)],
      [/key\.pem is incomplete/, keyFile, half(current.key)],
      [/cert\.pem holds no certificate in PEM/, certFile, 'no certificate'],
      [/cannot read .*cert\.pem/, certFile, undefined],
    ]
    for (const [, file, content] of invalid) {
      await expectReload(sidecar, 'failure', () =>
        content === undefined ? rmSync(file) : replaceFile(file, content),
      )
      expect(await servedName(sidecar.url)).toBe('first')
      await expectReload(sidecar, 'success', () =>
        replaceFile(file, file === certFile ? current.cert : current.key),
      )
    }
    const problems = (): string[] => sidecar.logged(NOT_RELOADED).map((line) => String(line.problems))
    await sidecar.waitForLog(NOT_RELOADED, () => problems().length === invalid.length)
    for (const [i, [why]] of invalid.entries()) expect(problems()[i]).toMatch(why)
    expect(sidecar.logged(NOT_RELOADED).every(({ level }) => level === 50)).toBe(true)
    for (const line of `${current.key}${rsa.key}`.split('\n').filter((each) => /^[^-]{16,}/.test(each))) {
      expect(sidecar.lines.join()).not.toContain(line)
    }
    await expectConnected()
  })

  it('that is replaced with its key is presented to new connections, while open ones continue', async () => {
    const { sidecar, held, token, expectConnected } = running
    const connection = await sidecar.connect()
    const path = '/download/certificate'
    const download = connection.start({ path, fields: ['Authorization', `Bearer ${token}`] })
    await download.waitFor('first piece')
    expect(await servedName(sidecar.url)).toBe('first')
    // The key first: until the certificate follows, they are no pair.
    await expectReload(sidecar, 'failure', () => replaceFile(current.keyFile, other.key))
    await expectReload(sidecar, 'success', () => replaceFile(current.certFile, other.cert))
    expect(await servedName(sidecar.url)).toBe('second')
    await expectConnected()
    held.get(path)?.end(Buffer.alloc(DOWNLOAD_SIZE - 'first piece\n'.length))
    expect((await download.response).body).toHaveLength(DOWNLOAD_SIZE)
    expect(await sidecar.use(token)).toBe(200)
  })

  it('in another file is either in effect or listed as waiting for a restart', async () => {
    const { sidecar, site, expectConnected } = running
    const third = await makeCertificate('third')
    const before = sidecar.logged(AFTER_RESTART).length
    await expectReload(sidecar, 'success', () =>
      site.configure({ listen: { tls: { cert: third.certFile, key: third.keyFile } } }),
    )
    await expectConnected()
    const inEffect = (await servedName(sidecar.url)) === 'third'
    await sidecar.stop() // flushes the log
    expect(sidecar.logged(AFTER_RESTART).length > before).toBe(!inEffect)
  })
})

it('a reload changes the format of the log', async () => {
  const site = await prepareSite()
  const sidecar = await site.serve()
  site.configure({ log: { format: 'pretty' } })
  await expect.poll(() => sidecar.lines.find((line) => line.includes(RELOADED))).toMatch(/^\[.*\] INFO: /)
})

it('H229 a reload says that the next start will fail without a password file, as long as that is so', async () => {
  const site = await prepareSite()
  const page = join(site.directory, 'page')
  writeFileSync(page, 'the password of the page\n', { mode: 0o600 })
  site.configure({ admin: { password_file: page } })
  const sidecar = await site.serveHere()
  const failing = () =>
    sidecar.log
      .filter(({ msg }) => msg.startsWith('the next start will fail'))
      .map(({ key, reason }) => [key, reason])
  await expectReload(sidecar, 'success', () => sidecar.signal('SIGHUP'))
  expect(failing()).toEqual([])
  rmSync(site.passwordFile)
  await expectReload(sidecar, 'success', () => sidecar.signal('SIGHUP'))
  await expect.poll(failing).toEqual([['password.file', 'there is no such file']])
  rmSync(page)
  await expectReload(sidecar, 'success', () => sidecar.signal('SIGHUP'))
  await expect
    .poll(() => failing().slice(1))
    .toEqual([
      ['password.file', 'there is no such file'],
      ['admin.password_file', 'there is no such file'],
    ])
})

it('H229 a reload says that the next start will fail without the account, or with a hash that takes too much memory', async () => {
  const site = await prepareSite()
  const [users, others] = [join(site.directory, 'users'), join(site.directory, 'others')]
  for (const file of [users, others])
    writeFileSync(file, 'device:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\n', { mode: 0o600 })
  site.configure({ password: { file: undefined, htpasswd: { file: users, user: 'device' } } })
  const sidecar = await site.serveHere()
  const failing = () =>
    sidecar.log.filter(({ msg }) => msg.startsWith('the next start will fail')).map(({ reason }) => reason)
  replaceFile(users, 'somebody:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\n')
  await expectReload(sidecar, 'success', () => sidecar.signal('SIGHUP'))
  await expect.poll(failing).toEqual(['it has no user "device"'])
  // A locked account has no password, and a start takes that as it is. So it does if another name is left.
  replaceFile(users, 'device:!{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\n')
  await expectReload(sidecar, 'success', () => sidecar.signal('SIGHUP'))
  replaceFile(users, 'somebody:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\n')
  const passwords = [users, others].map((file, at) => ({
    name: `n${at}`,
    htpasswd: { file, user: 'device' },
  }))
  await expectReload(sidecar, 'success', () => site.configure({ password: undefined, passwords }))
  expect(failing()).toHaveLength(1)
  const heavy = `$argon2id$v=19$m=262144,t=1,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}\n`
  const file = join(site.directory, 'heavy')
  writeFileSync(file, heavy, { mode: 0o600 })
  const other = { password: { file, htpasswd: undefined }, passwords: undefined }
  await expectReload(sidecar, 'success', () => site.configure(other))
  expect(failing()).toHaveLength(1)
  // The sidecar has the password already.
  await expectReload(sidecar, 'success', () => site.configure({ listen: { memory: '64MiB' } }))
  await expect
    .poll(() => failing().slice(1))
    .toEqual(['a login with this hash takes 256 MiB, and clients may hold 64 MiB (listen.memory)'])
})
