import { once } from 'node:events'
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { hashSync } from 'bcryptjs'
import { describe, expect, it } from 'vitest'
import { NODE_FLAGS } from '../../deploy/build/node-flags.ts'
import { shippedArguments } from '../build/shipped.ts'
import { startHook } from '../password/hook.ts'
import { makeCertificate, temporaryDirectory } from '../support/certificate.ts'
import { startDevice } from '../support/device.ts'
import { PASSWORD } from '../support/sidecar.ts'
import { prepareSite, replaceFile, type Served, type Site, type SiteOptions } from './serve.ts'
import { holdResponses, openStreams } from './streams.ts'

/** Prepares a site whose sidecar starts as the unit starts it. The service manager makes the state folder first. */
function shipped(options: SiteOptions = {}): Promise<Site> {
  return prepareSite({
    ...options,
    command(configuration, state) {
      mkdirSync(state, { mode: 0o700 })
      return [process.execPath, ...shippedArguments({ configuration, state })]
    },
  })
}

/** The environment of the unit: no compile cache, because that would need another writable folder. */
const unitEnv = (nodeOptions = ''): Readonly<Record<string, string>> => ({
  NODE_COMPILE_CACHE: '',
  NODE_OPTIONS: nodeOptions,
})

const serve = (site: Site, nodeOptions?: string): Promise<Served> => site.serve({ env: unitEnv(nodeOptions) })

/** Starts a sidecar that must exit with 2, and returns its message. */
async function refusal(site: Site): Promise<string> {
  const launched = site.launch({ env: unitEnv() })
  expect(await launched.exit).toEqual({ code: 2, signal: null })
  return launched.stderr
}

/** Stops the sidecar and checks that it logged no error and that standard error is empty. */
async function expectClean(sidecar: Served): Promise<void> {
  await sidecar.stop()
  expect(sidecar.log.filter(({ level }) => level >= 50)).toEqual([])
  expect(await sidecar.stderr).toBe('')
}

/** The common name of the certificate that a new connection gets. */
function servedName(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', rejectUnauthorized: false })
    socket.once('error', reject).once('secureConnect', () => {
      resolve(String(socket.getPeerCertificate().subject.CN))
      socket.destroy()
    })
  })
}

/** A module that has the sidecar log, at SIGUSR2, which of these permissions it `has`. */
function tellingOf(permissions: readonly (readonly [scope: string, path?: string])[]): string {
  const has = `${JSON.stringify(permissions)}.map((each) => process.permission.has(...each))`
  const code = `process.on('SIGUSR2', () => console.log(JSON.stringify({ msg: 'permissions', level: 0, has: ${has} })))`
  return `data:text/javascript,${encodeURIComponent(code)}`
}

const NOT_RELOADED = 'configuration not reloaded: the previous one stays in effect'

describe('Under the permissions of the shipped unit,', () => {
  it('a configuration, certificate and password take effect when they are replaced by renaming, and a file elsewhere is refused with the name of the missing flag', async () => {
    const site = await shipped({ transport: 'tls' })
    const [first, second] = [await makeCertificate('first'), await makeCertificate('second')]
    const [cert, key] = [join(site.directory, 'cert.pem'), join(site.directory, 'key.pem')]
    writeFileSync(cert, first.cert)
    writeFileSync(key, first.key)
    site.configure({ listen: { tls: { cert, key } } })
    const sidecar = await serve(site)
    expect(await servedName(sidecar.url)).toBe('first')
    const { access_token } = await sidecar.grant()
    expect(await sidecar.use(access_token)).toBe(200)

    site.configure({ limits: { api: { requests: 7 } } })
    await sidecar.waitForLog('configuration reloaded', ({ changed }) =>
      JSON.stringify(changed).includes('limits'),
    )
    expect((await sidecar.request({ token: access_token })).header('x-ratelimit-limit')).toBe('7')

    replaceFile(key, second.key)
    replaceFile(cert, second.cert)
    await expect.poll(() => servedName(sidecar.url)).toBe('second')

    site.setPassword('another\n')
    await sidecar.waitForLog('tokens revoked')
    expect(await sidecar.use(access_token)).toBe(401)
    await sidecar.grant('another')

    site.configure({ listen: { tls: { cert: second.certFile, key: second.keyFile } } })
    const missing = `cannot read ${second.certFile}: Node's permission model forbids it; add --allow-fs-read=${second.certFile} to NODE_OPTIONS`
    await sidecar.waitForLog(NOT_RELOADED, ({ problems }) => String(problems).includes(missing))
    await sidecar.stop()
    // The pair does not match while only one of its files is replaced. There must be no other error.
    const errors = sidecar.log.filter(
      ({ level, problems }) => level >= 50 && !/pair|forbids it/.test(String(problems)),
    )
    expect(errors).toEqual([])
    expect(await sidecar.stderr).toBe('')
  })

  it('C7 tokens and the self-signed certificate survive a kill; status, explain and revoke work', async () => {
    const site = await shipped({ transport: 'tls', config: { listen: { tls: 'auto' } } })
    const killed = await serve(site)
    const { access_token } = await killed.grant()
    const pem = readFileSync(join(site.stateDir, 'tls', 'cert.pem'), 'utf8')
    // The permission model forbids `fsync` of Node, so only SQLite can bound what a power cut loses to a second of logins.
    const log = join(site.stateDir, 'tokens.db-wal')
    await expect.poll(() => readFileSync(log).includes('flushed')).toBe(true)
    await killed.kill()

    const restarted = await serve(site)
    expect(await restarted.use(access_token)).toBe(200)
    expect(readFileSync(join(site.stateDir, 'tls', 'cert.pem'), 'utf8')).toBe(pem)
    const status = await site.postern('status')
    expect([status.code, status.stdout]).toEqual([0, expect.stringContaining('1 grant,')])
    expect((await site.postern('explain')).stdout).toMatch(/ 200 .*\n.* GET \//)
    expect((await site.postern('revoke', '--all')).stdout).toBe('1 grant revoked\n')
    expect(await restarted.use(access_token)).toBe(401)
    await expectClean(restarted)
    expect(killed.log.filter(({ level }) => level >= 50)).toEqual([])
  })

  it.each(['strict', 'tolerant'])(
    'a device behind the %s parser serves requests, streams, tunnels, health checks and `check`',
    async (parser) => {
      const site = await shipped({
        transport: 'tls',
        config: {
          listen: { tls: 'auto' },
          upstream: { parser, health: { path: '/health', interval: '1s' } },
        },
      })
      holdResponses(site.device)
      const sidecar = await serve(site)
      const { access_token } = await sidecar.grant()
      const streams = await openStreams(sidecar, access_token)
      expect(await sidecar.use(access_token)).toBe(200)
      await expect.poll(() => sidecar.metric('postern_upstream_up')).toBe(1)
      await sidecar.revoke({ all: true })
      await Promise.all(streams.map(({ broken }) => broken))
      const check = await site.postern('check')
      expect(check.stdout.match(/^(ok|FAILED) .*$/gm)).toEqual(
        expect.arrayContaining([expect.stringMatching(/^ok +device: http:.* answered 200$/)]),
      )
      expect(check.code).toBe(0)
      await expectClean(sidecar)
    },
  )

  it('a device on a Unix socket serves, and a state folder that is a symbolic link, as systemd makes it for DynamicUser, is writable', async () => {
    const device = await startDevice(undefined, { path: join(temporaryDirectory(), 'device.sock') })
    const elsewhere = temporaryDirectory()
    const site = await prepareSite({
      device,
      command(configuration, state) {
        symlinkSync(elsewhere, state)
        return [process.execPath, ...shippedArguments({ configuration, state })]
      },
    })
    const sidecar = await serve(site)
    expect(await sidecar.use((await sidecar.grant()).access_token)).toBe(200)
    expect(device.requests).toHaveLength(1)
    expect(readdirSync(elsewhere)).toContain('tokens.db')
    await expectClean(sidecar)
  })

  it('H360 a hook is asked, also one outside of the permitted folders, and `check` asks it', async () => {
    const hook = await startHook({ password: PASSWORD })
    const site = await shipped({ config: { password: { file: undefined, socket: hook.socket } } })
    const sidecar = await serve(site)
    expect(await sidecar.use((await sidecar.grant()).access_token)).toBe(200)
    expect((await sidecar.login('wrong')).status).toBe(400)
    expect((await site.postern('check')).stdout).toMatch(/^ok +password hook: it answers/m)
    await expectClean(sidecar)
  })

  it('H361 no password is sent to a socket below a folder that others can write, although the process cannot see that folder', async () => {
    const above = temporaryDirectory()
    const [folder, { folder: made }] = [join(above, 'hook'), await startHook()]
    renameSync(made, folder)
    const socket = join(folder, 'check.sock')
    const site = await shipped({ config: { password: { file: undefined, socket } } })
    chmodSync(above, 0o777)
    expect(await refusal(site)).toBe(
      `postern serve: ${site.configFile}:1: password.socket: ${socket}: other users can write ${above}, so they could put a socket there ` +
        `and receive passwords; chmod go-w ${above}, or put the socket into a folder of root\n`,
    )
  })

  it('a hash that needs a thread is refused with the name of the missing flag, and works with the flag', async () => {
    const site = await shipped({ password: hashSync(PASSWORD, 4) })
    expect(await refusal(site)).toBe(
      `postern serve: ${site.configFile}:1: password.file: ${site.passwordFile}: a hash of this kind is verified on a worker thread. ` +
        "Node's permission model forbids it; add --allow-worker to NODE_OPTIONS; " +
        `postern hash-password > ${site.passwordFile} writes a usable one\n`,
    )
    const sidecar = await serve(site, '--allow-worker --disable-warning=PERM0006')
    expect((await sidecar.login('wrong')).status).toBe(400)
    expect(await sidecar.use((await sidecar.grant()).access_token)).toBe(200)
    await expectClean(sidecar)
  })

  it('files outside of the permitted folders, and the configuration itself, are permitted by one restart', async () => {
    const outside = join(temporaryDirectory(), 'a "folder" of ours')
    mkdirSync(outside)
    const file = join(outside, 'password')
    writeFileSync(file, `${PASSWORD}\n`)
    const { certFile, keyFile } = await makeCertificate()
    const site = await prepareSite({
      transport: 'tls',
      config: {
        password: { file },
        listen: { tls: { cert: certFile, key: keyFile } },
        upstream: { headers: { 'X-Key': { file } } },
      },
      command: (_, state) => [
        process.execPath,
        ...shippedArguments({ configuration: '/nowhere', state: `${state}-of-another` }),
      ],
    })
    const others = { folder: outside, beside: join(outside, 'other'), above: temporaryDirectory() }
    const tell = `console.log('{"msg": "started"}'); const { permission } = process; process.on('SIGUSR2', () => console.log(JSON.stringify({ msg: 'permissions', level: 0, read: ${JSON.stringify(Object.values(others))}.map((path) => permission.has('fs.read', path)), write: permission.has('fs.write', ${JSON.stringify(file)}) })))`
    const sidecar = await serve(site, `--import=data:text/javascript,${encodeURIComponent(tell)}`)
    expect(await sidecar.use((await sidecar.grant()).access_token)).toBe(200)
    expect(readdirSync(site.stateDir)).toContain('tokens.db')
    expect(sidecar.logged('started')).toHaveLength(2)
    sidecar.signal('SIGUSR2')
    const { read, write } = await sidecar.waitForLog('permissions')
    expect([read, write]).toEqual([[false, false, false], false])
    // The folder is not watched without permission, so polling notices the change. Permission is by path, not by inode.
    replaceFile(file, 'another\n')
    await sidecar.waitForLog('tokens revoked')
    await expectClean(sidecar)
  })

  it('a socket that a killed sidecar has left is replaced, also that of listen.redirect', async () => {
    const path = join(temporaryDirectory(), 'plain')
    const former = createServer().listen(`${path}-bound`)
    await once(former, 'listening')
    // The end of the server removes the path that it was bound to.
    renameSync(`${path}-bound`, path)
    former.close()
    const site = await shipped({ transport: 'tls', config: { listen: { redirect: `unix:${path}` } } })
    const sidecar = await serve(site)
    await sidecar.waitForLog('listening', ({ redirect }) => redirect === `http://unix:${path}`)
    await expectClean(sidecar)
  })

  it('an htpasswd file is permitted with the thread that its hashes need', async () => {
    const folder = temporaryDirectory()
    const file = join(folder, 'htpasswd')
    writeFileSync(file, `admin:${hashSync(PASSWORD, 4)}\n`, { mode: 0o600 })
    const site = await shipped({
      config: { password: { file: undefined, htpasswd: { file, user: 'admin' } } },
    })
    const sidecar = await serve(site)
    await sidecar.grant()
    expect((await sidecar.login('wrong')).status).toBe(400)
    await expectClean(sidecar)
  })

  it('H248 H280 a sidecar that listens reads what bounds its memory, and may start no program and no thread, and load no native code', async () => {
    const scopes = ['child', 'ffi', 'addon', 'worker', 'wasi', 'inspector']
    const paths = [
      '/proc/self/cgroup',
      '/proc/self/status',
      '/sys/fs/cgroup/memory.max',
      '/sys/fs/cgroup/memory/x/memory.stat',
    ]
    const all = [
      ...scopes.map((scope) => [scope] as const),
      ...paths.map((path) => ['fs.read', path] as const),
    ]
    const sidecar = await serve(await shipped(), `--import=${tellingOf(all)}`)
    sidecar.signal('SIGUSR2')
    const { has } = await sidecar.waitForLog('permissions')
    expect(has).toEqual([...scopes.map(() => false), ...paths.map(() => true)])
    await expectClean(sidecar)
  })
})

it('the executable has no flag that undoes its permissions', () => {
  expect(NODE_FLAGS).toContain('--permission')
  // They do not bind native code, and a thread can drop them.
  for (const all of [
    '--allow-worker',
    '--allow-addons',
    '--allow-ffi',
    '--allow-fs-read=*',
    '--allow-fs-write=*',
  ]) {
    expect(NODE_FLAGS).not.toContain(all)
  }
})
