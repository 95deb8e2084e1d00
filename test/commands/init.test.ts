import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { beforeEach, describe, expect, it } from 'vitest'
import { loadConfig, readConfigFile } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'
import { pinOf } from '../../src/device/target.ts'
import { hashPassword } from '../../src/password/key-derivation.ts'
import { runAtKeyboard, runInProcess } from '../process/in-process.ts'
import { ENV, MAIN } from '../process/serve.ts'
import { makeCertificate, temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { type Device, startDevice } from '../support/device.ts'
import { ANY, opensslCertificate, startOpenssl } from '../support/openssl-server.ts'
import { unusedPort } from '../support/raw.ts'
import { HASHED_PASSWORD } from '../support/sidecar.ts'
import { runOnTerminal, type Session, type Turn } from '../support/terminal.ts'
import { run } from '../support/tools.ts'

let folder: string
let config: string
let password: string
let device: Device

beforeEach(async () => {
  folder = temporaryDirectory()
  config = join(folder, 'postern.yaml')
  password = join(temporaryDirectory(), 'device password')
  writeFileSync(password, `${HASHED_PASSWORD}\n`, { mode: 0o600 })
  device = await startDevice()
})

const init = (...args: string[]) => runInProcess(['init', '--config', config, ...args])
const written = (): Config => loadConfig({ file: readConfigFile(config), env: {}, sets: [] })

/** `check` on ports that no other test uses. */
const check = () => {
  const sets = ['listen.address', 'admin.address'].flatMap((key) => ['--set', `${key}=127.0.0.1:0`])
  return runInProcess(['check', '--quiet', '--config', config, ...sets])
}

function deviceWithLogin(challenge: string): Promise<Device> {
  return startDevice(
    (_request, response) => void response.writeHead(401, { 'WWW-Authenticate': challenge }).end(),
  )
}

describe('postern init without a terminal', () => {
  it('H105 writes a configuration that passes check, and says what to do next', async () => {
    const { code, stdout, stderr } = await init('--url', device.url, '--password-file', password)
    expect({ code, stderr }).toEqual({ code: 0, stderr: `ok      device: ${device.url} answered 200\n` })
    const flag = `--config ${config}`
    expect(stdout).toContain(`\n  postern check ${flag}\n  postern serve ${flag}\n  postern try / ${flag}\n`)
    expect(await check()).toMatchObject({ code: 0, stdout: '', stderr: '' })
    expect(written()).toMatchObject({ password: { file: password }, stateDir: join(folder, 'state') })
    expect(readFileSync(config, 'utf8')).toMatch(/^ {2}# max_in_flight: \{min: 1, max: 4\}$/m)
    expect([readdirSync(folder), statSync(config).mode & 0o777]).toEqual([['postern.yaml'], 0o600])
  })

  it.each<readonly [string, (file: string) => readonly string[], (file: string) => object]>([
    [
      '--htpasswd',
      (file) => ['--htpasswd', file, '--user', 'jo'],
      (file) => ({ htpasswd: { file, user: 'jo' } }),
    ],
    ['--shadow', (file) => ['--shadow', file, '--user', 'jo'], (file) => ({ shadow: { file, user: 'jo' } })],
    ['--device-login', () => ['--device-login', 'digest', '--user', "o'neil"], () => ({ device: true })],
  ])('H105 takes the password from %s', async (_flag, flags, source) => {
    const users = join(folder, 'users')
    writeFileSync(users, `jo:${await hashPassword('hunter two')}\n`, { mode: 0o600 })
    expect(await init('--url', device.url, ...flags(users))).toMatchObject({ code: 0 })
    expect(written().password).toEqual(source(users))
    expect(await check()).toMatchObject({ code: 0, stdout: '' })
  })

  it('H226 refuses a short or usual password in a file, and takes it with --weak', async () => {
    for (const weak of ['x', 'password1']) {
      writeFileSync(password, `${weak}\n`)
      const refused = await init('--url', device.url, '--password-file', password)
      expect(refused).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(
          /device password: the password .*; choose another one, or use it .*--weak\n$/,
        ),
      })
      expect(readdirSync(folder)).toEqual([])
    }
    expect(await init('--url', device.url, '--password-file', password, '--weak')).toMatchObject({ code: 0 })
  })

  it('H104 never overwrites a file', async () => {
    writeFileSync(config, 'precious')
    const { code, stderr } = await init('--url', device.url, '--password-file', password)
    expect([code, stderr]).toEqual([
      2,
      `postern init: ${config} exists, and init overwrites nothing; edit it, remove it, or name another file with --config\n`,
    ])
    expect(readFileSync(config, 'utf8')).toBe('precious')
  })

  it('H104 exits with 1 and writes nothing if the device does not answer; --skip-checks writes nevertheless', async () => {
    const flags = ['--url', `http://127.0.0.1:${await unusedPort()}`, '--password-file', password]
    const refused = await init(...flags)
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(
      /^FAILED {2}device: .* \(connection_refused\)\n {8}clients would get .*; nothing listens there: .*\npostern init: nothing is written, because of the device; correct --url, or /,
    )
    expect(readdirSync(folder)).toEqual([])
    expect(await init(...flags, '--skip-checks')).toMatchObject({ code: 0, stderr: '' })
    expect(readdirSync(folder)).toEqual(['postern.yaml'])
  })

  it('H105 goes on with a device whose answer is a warning', async () => {
    const failing = await startDevice((_request, response) => void response.writeHead(500).end())
    const { code, stderr } = await init('--url', failing.url, '--password-file', password)
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining(`WARNING device: ${failing.url} answered 500\n`),
    ])
    expect(written().upstream.url).toMatchObject({ origin: failing.url })
  })

  it.each([
    ['basic', 'Basic realm="camera"', 'Basic'],
    ['digest', 'Digest realm="camera", nonce="1", qop="auth", Basic realm="camera"', 'Digest'],
  ])(
    'H105 says that the device has a %s login of its own, unless it is what checks passwords',
    async (kind, challenge, name) => {
      const { url } = await deviceWithLogin(challenge)
      const { code, stdout, stderr } = await init('--url', url, '--password-file', password)
      expect(code).toBe(0)
      expect(stderr).toContain(
        `WARNING device: ${url} answered 401, which asks for a ${name} login of its own\n`,
      )
      expect(stderr).toContain(`set upstream.auth: {kind: ${kind}, user: NAME, password: {file: FILE}}`)
      expect(stdout).toContain(`\nThe device has a ${name} login of its own.`)
      const login = ['--device-login', kind, '--user', 'jo']
      const answered = await init('--config', `${config}2`, '--url', url, ...login)
      expect(answered).toMatchObject({ code: 0, stderr: `ok      device: ${url} answered 401\n` })
      expect(answered.stdout).not.toContain('login of its own')
    },
  )

  it('H109 explains the certificate of the device', async () => {
    const { url } = await startDevice(undefined, { tls: await makeCertificate() })
    const { code, stderr } = await init('--url', url, '--password-file', password)
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /is self-signed.*\n.*write under upstream: tls: \{pin: .*\n.*or write the configuration with --skip-checks and add to its upstream: tls: \{pin: /,
      ),
    ])
  })
})

it('H105 --device-ca names the certificate of the device', async () => {
  const certificate = await makeCertificate()
  const { url } = await startDevice(undefined, { tls: certificate })
  const flags = ['--url', url, '--password-file', password, '--device-ca', certificate.certFile]
  expect(await init(...flags)).toMatchObject({ code: 0 })
  expect(written().upstream.tls).toMatchObject({ ca: certificate.certFile, insecure: false })
  expect(await check()).toMatchObject({ code: 0, stdout: '' })
})

const onTerminal = (args: readonly string[], ...dialogue: readonly Turn[]): Promise<Session> =>
  runAtKeyboard(['init', '--config', config, ...args], ...dialogue)

/** The same with the program itself on a terminal of the kernel, which would show what is typed. */
function onRealTerminal(args: readonly string[], ...dialogue: readonly Turn[]): Promise<Session> {
  const command = [process.execPath, MAIN, 'init', '--config', config, ...args]
  return runOnTerminal(command, { env: ENV }, ...dialogue)
}

it('H230 init prints the commands as they are typed where it runs, also into the file', async () => {
  const flags = ['--url', device.url, '--password-file', password, '--config', config]
  const command = ['run', '--silent', 'postern', '--', 'init', ...flags]
  const { stdout } = await run('npm', command, { cwd: join(import.meta.dirname, '../..') })
  expect(stdout).toContain(`\n  npm run -s postern -- check --config ${config}\n`)
  expect(stdout).toContain(`\n  npm run -s postern -- serve --config ${config}\n`)
  expect(readFileSync(config, 'utf8')).toContain(`npm run -s postern -- check --config ${config}\n`)
})

const CTRL_C = '\x03'
/** The last question, answered by Enter. */
const AT_ONCE: Turn = ['At once [up to 4]: ', '\r']
const NOT_TRIED: Turn = ['to try it now', '\r']

describe('postern init on a terminal', () => {
  it('H105 H355 asks for the address and the password, which it does not show, and stores the hash of it', async () => {
    const { code, screen } = await onRealTerminal(
      [],
      ['Address of the device', `${new URL(device.url).host}\r`],
      ['Choice [1]: ', '\r'],
      ['Password: ', 'x\r'],
      ['Password again: ', 'x\r'],
      ['Choice [1]: ', '\r'],
      ['Password: ', 'hunter two\r'],
      ['Password again: ', 'hunter two\r'],
      AT_ONCE,
    )
    expect(code, screen).toBe(0)
    expect(screen).toContain(`ok      device: ${device.url} answered 200\n`)
    expect(screen).not.toContain('hunter two')
    expect(readFileSync(join(folder, 'password'), 'utf8')).toMatch(/^\$argon2id\$\S+\n$/)
    expect(readdirSync(folder).map((name) => [name, statSync(join(folder, name)).mode & 0o777])).toEqual([
      ['password', 0o600],
      ['postern.yaml', 0o600],
    ])
    expect(await check()).toMatchObject({ code: 0, stdout: '' })
  })

  it('offers another address, or to go on, if the device does not answer', async () => {
    const gone = `http://127.0.0.1:${await unusedPort()}`
    const { code, screen } = await onTerminal(
      ['--password-file', password],
      ['Address of the device', 'ftp://x\r'],
      ['Address of the device', `${gone}\r`],
      ['Or type its URL now: ', 'n\r'],
      ['Address of the device', `${gone}\r`],
      ['Or type its URL now: ', `${device.url}\r`],
      AT_ONCE,
    )
    expect(code, screen).toBe(0)
    expect(screen.replaceAll(/\s+/g, ' ')).toContain("must be the device's address")
    expect(screen.replaceAll(/\s+/g, ' ')).toContain('nothing listens there')
    expect(written().upstream.url).toMatchObject({ origin: device.url })
    expect(
      await onTerminal(
        ['--url', gone, '--password-file', password, '--config', `${config}2`],
        ['y: use the address anyway', 'y\r'],
      ),
    ).toMatchObject({ code: 0 })
    expect(readFileSync(`${config}2`, 'utf8')).toContain(`url: ${gone}\n`)
  })

  it('H105 writes the pin of the certificate of the device, if the operator trusts it', async () => {
    const certificate = await makeCertificate()
    const { url } = await startDevice(undefined, { tls: certificate })
    const { code, screen } = await onTerminal(
      ['--url', url, '--password-file', password],
      ['t: write tls: {pin: sha256/', 't\r'],
    )
    expect(code, screen).toBe(0)
    expect(screen).toMatch(/SHA-256\s+fingerprint\s+is\s.*Trying .*answered 200/s)
    expect(written().upstream.tls.pin).toBe(pinOf(new X509Certificate(certificate.cert).raw))
    expect(await check()).toMatchObject({ code: 0, stdout: '' })
  })

  it('H168 writes all that a device with TLS of another decade needs', async () => {
    const pair = opensslCertificate()
    const old = await startOpenssl(pair, '-tls1_1', '-cipher', ANY)
    const { code, screen } = await onTerminal(
      ['--url', `https://127.0.0.1:${old?.port}`, '--password-file', password],
      ['t: write tls: {weak: true, pin: sha256/', 't\r'],
    )
    expect(code, screen).toBe(0)
    expect(written().upstream.tls).toMatchObject({ weak: true })
    expect(await check()).toMatchObject({ code: 0 })
  })

  it('H168 writes the groups that a device with brainpool needs', async () => {
    const pair = opensslCertificate('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:brainpoolP256r1')
    const device = await startOpenssl(pair)
    const { code, screen } = await onTerminal(
      ['--url', `https://127.0.0.1:${device?.port}`, '--password-file', password],
      ['t: write tls: {groups: [P-256, brainpoolP256r1], pin: sha256/', 't\r'],
    )
    expect(code, screen).toBe(0)
    expect(written().upstream.tls).toMatchObject({ groups: ['P-256', 'brainpoolP256r1'] })
    expect(await check()).toMatchObject({ code: 0 })
  })

  it('H105 writes the pin of the certificate whose fingerprint it shows, even if the device changes it', async () => {
    const pairs = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => makeCertificate(name)))
    const changing = createServer(pairs[0] ?? {})
    let connections = 0
    changing.prependListener('connection', () => changing.setSecureContext(pairs[connections++] ?? {}))
    changing.on('tlsClientError', () => {})
    closeLater(() => void changing.close())
    await once(changing.listen(0, '127.0.0.1'), 'listening')
    const url = `https://127.0.0.1:${(changing.address() as AddressInfo).port}`
    const { code, screen } = await onTerminal(
      ['--url', url, '--password-file', password],
      ['t: write tls: {pin: sha256/', 't\r'],
      ['y: use the address anyway', 'y\r'],
    )
    expect(code, screen).toBe(0)
    const [, shown] = /fingerprint\s+is\s+([0-9A-F:]+)/.exec(screen) ?? []
    const pinned = Buffer.from(written().upstream.tls.pin?.slice('sha256/'.length) ?? '', 'base64')
    expect(pinned.toString('hex').toUpperCase(), screen).toBe(shown?.replaceAll(':', ''))
  })

  it('keeps --device-ca for another address', async () => {
    const certificate = await makeCertificate()
    const { url } = await startDevice(undefined, { tls: certificate })
    const gone = `https://127.0.0.1:${await unusedPort()}`
    const { code, screen } = await onTerminal(
      ['--url', gone, '--device-ca', certificate.certFile, '--password-file', password],
      ['Or type its URL now: ', `${url}\r`],
    )
    expect(code, screen).toBe(0)
    expect(written().upstream.tls.ca).toBe(certificate.certFile)
  })

  it('takes t for no address where there is nothing to write', async () => {
    const gone = `https://127.0.0.1:${await unusedPort()}`
    const { code, screen } = await onTerminal(
      ['--url', gone, '--password-file', password],
      ['Or type its URL now: ', 't\r'],
      ['Or type its URL now: ', CTRL_C],
    )
    expect(code, screen).toBe(2)
    expect(screen).toContain('There is nothing to write for TLS')
    expect(screen).not.toContain('http://t')
  })

  it.each(['', 'Prusa.4711', 'secret:8080', '7304519826', 'http//x'])(
    'H235 a device that does not answer: Enter asks again, and %j typed next is neither tried nor shown',
    async (secret) => {
      const gone = `http://127.0.0.1:${await unusedPort()}`
      const { code, screen } = await onTerminal(
        ['--url', gone, '--password-file', password],
        ['Or type its URL now: ', '\r'],
        ['Or type its URL now: ', `${secret}\r`],
        ['Or type its URL now: ', 'y\r'],
      )
      expect(code, screen).toBe(0)
      expect(screen.match(/Trying/g)).toHaveLength(1)
      if (secret === '') return
      expect(screen).toMatch(/may\s+have\s+been\s+the\s+password/)
      expect(screen).not.toContain(secret)
    },
  )

  it('takes an IP address without a scheme in place of a device that does not answer, and shows it', async () => {
    const gone = `http://127.0.0.1:${await unusedPort()}`
    const { host } = new URL(device.url)
    const { code, screen } = await onTerminal(
      ['--url', gone, '--password-file', password],
      ['Or type its URL now: ', `${host}\r`],
    )
    expect(code, screen).toBe(0)
    expect(screen).toContain(`now: ${host}\nTrying http://${host} ...`)
    expect(written().upstream.url).toMatchObject({ origin: device.url })
  })

  it('goes on with a device whose answer is a warning: what is typed next is the password', async () => {
    const failing = await startDevice((_request, response) => void response.writeHead(500).end())
    const { code, screen } = await onTerminal(
      ['--url', failing.url],
      ['Choice [1]: ', '\r'],
      ['Password: ', 'hunter two\r'],
      ['Password again: ', 'hunter two\r'],
      AT_ONCE,
    )
    expect(code, screen).toBe(0)
    expect(screen).toContain(`WARNING device: ${failing.url} answered 500\n`)
    expect(written().upstream.url).toMatchObject({ origin: failing.url })
  })

  it('H105 offers the login of the device, of the kind that it asks for', async () => {
    const { url } = await deviceWithLogin('Basic realm="camera"')
    const { code, screen } = await onTerminal(
      ['--url', url],
      ['Choice [5]: ', '\r'],
      ['User [admin]: ', 'jo\r'],
      NOT_TRIED,
      AT_ONCE,
    )
    expect(code, screen).toBe(0)
    const text = screen.replaceAll(/\s+/g, ' ')
    expect(text).toContain('answered 401, which asks for a Basic login of its own')
    expect(text).toContain('With 5 Postern signs in there for clients')
    expect(text).not.toContain('Set upstream.auth')
    expect(written().upstream.auth).toMatchObject({ kind: 'basic', user: 'jo' })
  })

  it('H105 without it, says which key is left to set, and writes its line as a comment', async () => {
    const { url } = await deviceWithLogin('Basic realm="camera"')
    const { code, screen } = await onTerminal(
      ['--url', url],
      ['Choice [5]: ', '1\r'],
      ['Password: ', 'hunter two\r'],
      ['Password again: ', 'hunter two\r'],
      AT_ONCE,
    )
    expect(code, screen).toBe(0)
    expect(screen.replaceAll(/\s+/g, ' ')).toContain('Set upstream.auth, as its comment in')
    expect(readFileSync(config, 'utf8')).toMatch(/^ {2}# auth: \{kind: basic, user: admin, /m)
  })

  it('does not show a password that is pasted with the choice before it', async () => {
    const { code, screen } = await onRealTerminal(
      ['--url', device.url],
      ['Choice [1]: ', '1\rpasted-secret\rpasted-secret\r'],
      AT_ONCE,
    )
    expect(code, screen).toBe(0)
    expect(screen).toContain('Password again: ')
    expect(screen).not.toContain('pasted')
  })

  it.each(['a secret of mine', '7304519826'])(
    'H235 takes %j at the menu for the password, and never shows it',
    async (secret) => {
      const { code, screen } = await onTerminal(
        ['--url', device.url],
        ['Choice [1]: ', `${secret}\r`],
        ['Password: ', `${secret}\r`],
        ['Password again: ', `${secret}\r`],
        AT_ONCE,
      )
      expect(code, screen).toBe(0)
      expect(screen).toMatch(
        /That is no number\. It may have been the password, so it is not shown\.\s+Type it\s+here:/,
      )
      expect(screen).not.toContain(secret)
    },
  )

  it('asks again for a password that cannot be used', async () => {
    writeFileSync(join(folder, 'password'), '')
    const { code, screen } = await onTerminal(
      ['--url', device.url],
      ['Choice [1]: ', '1\r'],
      ['Choice [1]: ', '7\r'],
      ['Choice [1]: ', '2\r'],
      ['File [', '\r'],
      ['Choice [1]: ', '4\r'],
      ['File [/etc/shadow]: ', `${password}\r`],
      ['User [admin]: ', '\r'],
      ['Choice [1]: ', '5\r'],
      ['basic or digest [digest]: ', 'form\r'],
      ['Choice [1]: ', '5\r'],
      ['basic or digest [digest]: ', 'basic\r'],
      ['User [admin]: ', 'jo\r'],
      NOT_TRIED,
      AT_ONCE,
    )
    expect(code, screen).toBe(0)
    for (const text of [
      'overwrites nothing; 2 uses',
      'Type 1, 2, 3, 4 or 5',
      'it is empty',
      'it has no user "admin"',
      'set upstream.auth afterwards',
    ])
      expect(screen.replaceAll(/\s+/g, ' ')).toContain(text)
    expect(written()).toMatchObject({
      password: { device: true },
      upstream: { auth: { kind: 'basic', user: 'jo' } },
    })
  })

  it.each<readonly [string, readonly (readonly [string, string])[]]>([
    ['at the address', [['Address of the device', CTRL_C]]],
    [
      'while the device is tried',
      [
        ['Address of the device', 'SILENT\r'],
        ['Trying', CTRL_C],
      ],
    ],
    [
      'at the choice',
      [
        ['Address of the device', 'DEVICE\r'],
        ['Choice [1]: ', CTRL_C],
      ],
    ],
    [
      'within the password',
      [
        ['Address of the device', 'DEVICE\r'],
        ['Choice [1]: ', '1\r'],
        ['Password: ', `hunt${CTRL_C}`],
      ],
    ],
    [
      'at the number of requests',
      [
        ['Address of the device', 'DEVICE\r'],
        ['Choice [1]: ', '1\r'],
        ['Password: ', 'hunter two\r'],
        ['Password again: ', 'hunter two\r'],
        ['At once [up to 4]: ', CTRL_C],
      ],
    ],
    [
      'at the second password',
      [
        ['Address of the device', 'DEVICE\r'],
        ['Choice [1]: ', '1\r'],
        ['Password: ', 'hunter two\r'],
        ['Password again: ', CTRL_C],
      ],
    ],
  ])('H104 Ctrl-C %s leaves nothing behind', async (where, dialogue) => {
    const silent = await startDevice(() => {})
    const typed = dialogue.map(
      ([cue, answer]) => [cue, answer.replace('DEVICE', device.url).replace('SILENT', silent.url)] as const,
    )
    const type = where === 'within the password' ? onRealTerminal : onTerminal
    const { code, screen } = await type([], ...typed)
    expect(screen).toContain('postern init: cancelled; nothing is written\n')
    // No other question is asked.
    expect(screen.match(/cancelled/g)).toHaveLength(1)
    expect([code, readdirSync(folder)]).toEqual([2, []])
  })
})

describe('what postern init writes for a device that takes so many requests at once', () => {
  const upstream = () => written().upstream
  const flags = () => ['--url', device.url, '--password-file', password]
  /** On a terminal, where a flag names the password, and the device is asked for. */
  const asked = (...dialogue: readonly Turn[]) =>
    onTerminal(['--password-file', password], ['Address of the device', `${device.url}\r`], ...dialogue)

  it.each([
    ['1', 'makes 2 at most'],
    ['2', 'makes 4 at most'],
    ['4', 'makes 6 at most'],
  ])('H105 --max-in-flight %s also allows one stream and one WebSocket, and says so', async (given, sum) => {
    const { code, stdout } = await init(...flags(), '--max-in-flight', given)
    expect(code).toBe(0)
    expect(stdout).toContain(`The device gets at most ${given} at once.`)
    expect(stdout.replaceAll('\n', ' ')).toContain(`max_streams and max_tunnels are 1, which ${sum}`)
    expect(upstream()).toMatchObject({ maxInFlight: Number(given), maxStreams: 1, maxTunnels: 1 })
    expect(readFileSync(config, 'utf8')).toContain(`  max_in_flight: ${given}\n`)
    expect(await check()).toMatchObject({ code: 0, stdout: '' })
  })

  it.each(['5', '64', '100000', 'auto'])(
    'H105 --max-in-flight %s leaves those at their defaults',
    async (given) => {
      const { code, stdout } = await init(...flags(), '--max-in-flight', given)
      expect(code).toBe(0)
      expect(stdout).not.toContain('max_streams')
      expect(upstream()).toMatchObject({
        maxInFlight: given === 'auto' ? given : Number(given),
        ...{ maxStreams: 64, maxTunnels: 64 },
      })
    },
  )

  it.each(['0', '100001', '-1', '4.5', 'more', '', '0x10'])(
    'H104 --max-in-flight %j is no number of requests, and nothing is written',
    async (given) => {
      const { code, stderr } = await init(...flags(), `--max-in-flight=${given}`)
      expect([code, stderr]).toEqual([
        2,
        'postern init: --max-in-flight: must be auto, or a whole number from 1 to 100000\n',
      ])
      expect(readdirSync(folder)).toEqual([])
    },
  )

  it.each<readonly [string, object]>([
    ['more', { maxInFlight: 'auto', maxStreams: 64 }],
    ['AUTO', { maxInFlight: 'auto' }],
    ['3', { maxInFlight: 3, maxStreams: 1, maxTunnels: 1 }],
    ['16', { maxInFlight: 16, maxStreams: 64, maxTunnels: 64 }],
    ['', { maxInFlight: { min: 1, max: 4 }, maxStreams: 64, maxTunnels: 64 }],
  ])('H105 on a terminal it asks, and takes %j', async (answer, keys) => {
    const { code, screen } = await asked(['At once [up to 4]: ', `${answer}\r`])
    expect(code, screen).toBe(0)
    expect(screen).toContain(`At once [up to 4]: ${answer}\n`)
    expect(upstream()).toMatchObject(keys)
  })

  it('H235 a password that is typed there is not shown, and it asks again', async () => {
    const { code, screen } = await asked(
      ['At once [up to 4]: ', 'hunter two\r'],
      ['At once [up to 4]: ', '7304519826\r'],
      ['At once [up to 4]: ', '2\r'],
    )
    expect(code, screen).toBe(0)
    expect(screen).toContain('Press Enter, or type more, or a number from 1 to 100000')
    expect(screen).not.toMatch(/hunter|7304519826/)
    expect(upstream().maxInFlight).toBe(2)
  })

  it('H105 it asks nothing if the flags leave nothing open', async () => {
    expect(await onTerminal([...flags(), '--max-in-flight', '8'])).toMatchObject({ code: 0 })
    expect(upstream().maxInFlight).toBe(8)
    for (const more of [[], ['--skip-checks']]) {
      const file = `${config}${more.length}`
      expect(await onTerminal([...flags(), '--config', file, ...more])).toMatchObject({ code: 0 })
      expect(readFileSync(file, 'utf8')).toContain('  # max_in_flight: {min: 1, max: 4}\n')
    }
    const address = ['Address of the device', `${device.url}\r`] as const
    const third = ['--config', `${config}3`, '--password-file', password, '--max-in-flight', 'auto']
    expect(await onTerminal(third, address)).toMatchObject({ code: 0 })
    expect(readFileSync(`${config}3`, 'utf8')).toContain('  max_in_flight: auto\n')
  })
})

it('H104 a password file is removed again if the configuration cannot be written', async () => {
  const { writeNewFiles } = await import('../../src/commands/init.ts')
  mkdirSync(config)
  const files = [
    { path: join(folder, 'password'), text: 'x' },
    { path: config, text: 'y' },
  ]
  expect(() => writeNewFiles(files)).toThrow(`cannot write ${config}: it exists, and init overwrites nothing`)
  expect(readdirSync(folder)).toEqual(['postern.yaml'])
})

it('works under the permission model of Node, as in the single executable', async () => {
  const grants = ['--permission', '--allow-net', '--allow-fs-read=*', '--allow-fs-write=*']
  const flags = ['init', '--config', config, '--url', device.url, '--password-file', password]
  const { code, stderr } = await run(process.execPath, [...grants, MAIN, ...flags], { env: ENV })
  expect(code, stderr).toBe(0)
  expect(readdirSync(folder)).toEqual(['postern.yaml'])
  expect(await check()).toMatchObject({ code: 0, stdout: '' })
})

it('as root, what is written into the folder of a service can be read by its group', async ({ skip }) => {
  skip(process.getuid?.() !== 0, 'only root can give a folder to another group')
  const GROUP = 4711
  chownSync(folder, 0, GROUP)
  expect(await init('--url', device.url, '--password-file', password)).toMatchObject({ code: 0 })
  expect(statSync(config)).toMatchObject({ uid: 0, gid: GROUP })
  expect(statSync(config).mode & 0o777).toBe(0o640)
})

it('as root, also into a setgid folder, whose group a new file has from the start', async ({ skip }) => {
  skip(process.getuid?.() !== 0, 'only root can give a folder to another group')
  chownSync(folder, 0, 4711)
  chmodSync(folder, 0o2750)
  expect(await init('--url', device.url, '--password-file', password)).toMatchObject({ code: 0 })
  expect(statSync(config)).toMatchObject({ uid: 0, gid: 4711 })
  expect(statSync(config).mode & 0o777).toBe(0o640)
})
