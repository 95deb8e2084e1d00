import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { beforeEach, describe, expect, it } from 'vitest'
import { checkCommand } from '../../src/commands/check.ts'
import { type CommandIo, reportFailure } from '../../src/commands/command.ts'
import type { ConfigOptions } from '../../src/commands/configuration.ts'
import { serveCommand } from '../../src/commands/serve.ts'
import { hashPassword } from '../../src/password/key-derivation.ts'
import { runPostern } from '../process/serve.ts'
import { accountAuth, startAccountDevice } from '../sign-in/account-device.ts'
import { redfishAuth, startRedfishDevice } from '../sign-in/session-devices.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { startDevice } from '../support/device.ts'
import { unusedPort } from '../support/raw.ts'
import { underFileModes } from '../support/tools.ts'

let directory: string
let password: string

beforeEach(() => {
  directory = temporaryDirectory()
  password = join(directory, 'password')
  writeFileSync(password, 'hunter2\n')
})

interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

type Command = (options: ConfigOptions, io: CommandIo) => Promise<number>

/** Runs a command as `main.ts` does. */
async function run(name: string, command: Command, set: readonly string[]): Promise<Ran> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const source = set.some((each) => each.startsWith('password.')) ? [] : [`password.file=${password}`]
  // The default ports may be in use, such as by the demo of another test.
  const addresses = ['listen', 'admin'].map((listener) => `${listener}.address=127.0.0.1:0`)
  const sets = [...source, 'listen.tls=off', ...addresses, `state_dir=${directory}`, ...set]
  const [out, err] = [text(stdout), text(stderr)]
  const code = await command({ set: sets }, { stdout, stderr, env: {} }).catch((error: unknown) =>
    reportFailure(name, error, { env: {}, stderr }),
  )
  stdout.end()
  stderr.end()
  return { code, out: await out, err: await err }
}

const check = (...set: readonly string[]): Promise<Ran> => run('check', checkCommand, set)

/** A `serve` that must fail at its start, because nothing stops it later. */
const failingServe: Command = (options, io) => {
  const permissions = { permission: undefined, env: {}, readOutside: () => undefined, restart() {} }
  const logSink = { terminal: false, fd: 1 }
  const daemon = () => ({ ...io, permissions, logSink, onStop() {}, onReload() {}, onCrash() {} })
  return serveCommand(options, { ...io, permissions, daemon })
}

describe('postern check', () => {
  it('prints the effective configuration without its secrets, tries everything in it, and exits with 0', async () => {
    const device = await startDevice()
    const { code, out } = await check(`upstream.url=${device.url}`, 'upstream.headers.X-Key=hunter2')
    expect(out).toContain(`url: ${device.url}`)
    expect(out).not.toContain('hunter2')
    expect(out).toMatch(/^ok {6}password source: readable$/m)
    expect(out).toMatch(
      /^ok {6}upstream headers: 1 set on every request; the head of a GET has \d+ bytes from curl, \d+ from Chromium$/m,
    )
    expect(out).toContain(`ok      device: ${device.url} answered 200`)
    expect(code).toBe(0)
  })

  it('warns of a state folder whose parent does not exist', async () => {
    const device = await startDevice()
    const { code, out } = await check(`upstream.url=${device.url}`, `state_dir=${directory}/a/b`)
    expect([code, out]).toEqual([
      0,
      expect.stringContaining(`WARNING state_dir: ${directory}/a does not exist\n`),
    ])
    expect(out).toContain(`mkdir -p ${directory}/a`)
  })

  it('exits with 1 and names what does not work if `serve` would start nevertheless', async () => {
    const url = `http://127.0.0.1:${await unusedPort()}`
    const { code, out } = await check(`upstream.url=${url}`)
    expect(out).toMatch(/^FAILED {2}device: .+/m)
    expect(out).toMatch(/^ok {6}certificate: off/m)
    expect(code).toBe(1)
  })

  it.each([
    ['a password file', 'password source', ['password.file=/nowhere']],
    ['a certificate', 'certificate', ['listen.tls={cert: /nowhere, key: /nowhere}']],
    ['a CA', 'device', ['upstream.tls.ca=/nowhere']],
    ['the file of a header', 'upstream headers', ['upstream.headers.X.file=/nowhere']],
    [
      'the password for the device',
      'signing in',
      ['upstream.auth={kind: basic, user: admin, password: {file: /nowhere}}'],
    ],
  ])('exits with 2 if %s does not exist, as `serve` does', async (_file, what, set) => {
    const sets = ['upstream.url=http://127.0.0.1:9', ...set]
    const checked = await check(...sets)
    const [, problem, remedy] =
      new RegExp(`^FAILED {2}${what}: (.*/nowhere.*)\n {8}.*?; (.*)$`, 'm').exec(checked.out) ?? []
    expect([checked.code, checked.err]).toEqual([2, ''])
    const served = await run('serve', failingServe, sets)
    expect([served.code, served.err]).toEqual([2, `postern serve: ${problem}; ${remedy}\n`])
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
      const { code, out } = await check(`upstream.url=${device.url}`, ...sets)
      const file = key === 'file' ? password : users
      expect(out).toContain(`WARNING password.${key}: ${file}: others can read it\n`)
      expect(out).toContain(`or replace it; chmod 0640 ${file}\n`)
      expect(code).toBe(0)
    },
  )

  it('reports a state folder that cannot be written; exits with 2 if the self-signed certificate is stored there', async () => {
    const device = await startDevice()
    const notAFolder = `state_dir=${password}/state`
    const { code, out } = await check(`upstream.url=${device.url}`, notAFolder)
    expect(out).toContain(`FAILED  state_dir: --set: ${password} is not a folder\n        a restart loses`)
    expect(code).toBe(1)
    expect(await check(`upstream.url=${device.url}`, notAFolder, 'listen.tls=auto')).toMatchObject({
      code: 2,
      out: expect.stringContaining(
        '\n        serve does not start: it cannot store the self-signed certificate; ',
      ),
    })
  })

  it('does not make the state folder, and says that the first start will', async () => {
    const device = await startDevice()
    const state = join(directory, 'state')
    const { code, out } = await check(`upstream.url=${device.url}`, `state_dir=${state}`)
    expect(out).toContain(`ok      state_dir: ${state} is created at the first start\n`)
    expect([code, readdirSync(directory)]).toEqual([0, ['password']])
  })

  it('reports a state folder whose path is too long for the control socket', async () => {
    const device = await startDevice()
    const { code, out } = await check(
      `upstream.url=${device.url}`,
      `state_dir=${join(directory, 'x'.repeat(90))}`,
    )
    expect(out).toMatch(
      /^FAILED {2}state_dir: --set: status, explain, issue and revoke will not work: .*at most 107 bytes$/m,
    )
    expect(code).toBe(1)
  })

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

  it('reports a Unix socket on which `serve` could not listen', async () => {
    const device = await startDevice()
    const { code, out } = await check(
      `upstream.url=${device.url}`,
      'listen.address=unix:/nowhere/public.sock',
      `admin.address=unix:${password}`,
    )
    expect(out).toMatch(
      /^FAILED {2}listen\.address: --set: cannot listen on .*: there is no folder \/nowhere$/m,
    )
    expect(out).toContain(
      `FAILED  admin.address: --set: cannot listen on unix:${password}: it exists and is not a socket\n`,
    )
    expect(code).toBe(1)
  })

  it('tries every service of the device', async () => {
    const [device, camera] = [await startDevice(), await startDevice()]
    const routes = [
      `upstream.routes./cam/.url=${camera.url}`,
      'upstream.routes./cam/.headers.X-Key.file=/nowhere',
      `upstream.routes./cam/.auth={kind: basic, user: eye, password: {file: ${password}}}`,
    ]
    const { code, out } = await check(`upstream.url=${device.url}`, ...routes)
    expect(out).toContain(`ok      device of /cam/: ${camera.url} answered 200`)
    expect(out).toMatch(
      /^FAILED {2}upstream headers of \/cam\/: --set: upstream.routes.\/cam\/.headers.X-Key: cannot read/m,
    )
    expect(code).toBe(2)
  })

  it('tries the login of a session, says what came, and signs out', async () => {
    const redfish = await startRedfishDevice()
    const file = join(directory, 'device-password')
    const setsWith = (auth: object): string[] => [
      `upstream.url=${redfish.device.url}`,
      `upstream.auth=${JSON.stringify({ ...auth, password: { file } })}`,
    ]
    const sets = setsWith(redfishAuth)
    writeFileSync(file, redfish.password, { mode: 0o600 })
    const { code, out } = await check(...sets)
    expect(out).toContain(
      'ok      signing in: /redfish/v1/SessionService/Sessions gave a token (header X-Auth-Token)\n',
    )
    expect([code, redfish.sessions.size, redfish.logouts.length]).toEqual([0, 0, 1])
    redfish.location = () => 'http://192.0.2.1/elsewhere'
    expect((await check(...sets)).out).toContain(
      'Location of the login names http://192.0.2.1, not the device: the session stays until the device ends it',
    )
    expect(
      (
        await check(
          ...setsWith({ ...redfishAuth, session: { ...redfishAuth.session, token: { json: '/id' } } }),
        )
      ).out,
    ).toContain(
      'FAILED  signing in: the login at /redfish/v1/SessionService/Sessions answered 201 without a token (json /id): a wrong password, or key\n',
    )
    writeFileSync(file, 'wrong')
    expect((await check(...sets)).out).toContain('FAILED  signing in: the device refuses these credentials\n')
  })

  it.each(['form', 'cookie', 'header'] as const)(
    'H243 names a device that changes its session with a response, and the key that allows it (%s)',
    async (kind) => {
      const account = await startAccountDevice(kind === 'header' ? 'header' : 'cookie')
      if (kind === 'cookie') account.asks = '401'
      const file = join(directory, 'device-password')
      writeFileSync(file, account.password, { mode: 0o600 })
      const setsWith = (settings: object) => {
        const value = JSON.stringify({ ...accountAuth(kind, settings), password: { file } })
        return [`upstream.url=${account.device.url}`, `upstream.auth=${value}`]
      }
      expect((await check(...setsWith({}))).out).toMatch(/^ok +signing in: /m)
      account.rotates = true
      const { code, out } = await check(...setsWith({}))
      expect(out).toMatch(/^WARNING .*signing in: .*; its response to GET \/ sets another session$/m)
      expect(out).toContain('set upstream.auth.on_change: follow, if no client can')
      expect(code).toBe(0)
      expect((await check(...setsWith({ on_change: 'follow' }))).out).toMatch(/^ok +signing in: /m)
    },
  )

  it('exits with 2 and one line for each problem of the configuration', async () => {
    const { code, out, err } = await check('upstream.url=ftp://x', 'limits.api.request=5')
    expect(out).toBe('')
    expect(err).toContain('upstream.url')
    expect(err).toContain('did you mean limits.api.requests?')
    expect(code).toBe(2)
  })
})
