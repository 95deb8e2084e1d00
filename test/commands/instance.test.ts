import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeEach, describe, expect, it } from 'vitest'
import { instanceOf, readInstances } from '../../src/commands/instance.ts'
import { collide, neighboursOf } from '../../src/commands/neighbour-files.ts'
import { parseAddress } from '../../src/config/address.ts'
import { loadConfig, readConfigFile } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'
import { listen } from '../../src/system/listen.ts'
import type { ListenAddress } from '../../src/system/listen-address.ts'
import { lockStateFolder } from '../../src/tokens/state-folder.ts'
import { runInProcess } from '../process/in-process.ts'
import { prepareSite, runPostern, type Serving } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { type Device, startDevice } from '../support/device.ts'
import { HASHED_PASSWORD } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'

let places: { readonly defaultConfig: string; readonly defaultState: string }
let devices: string
let password: string
let device: Device

beforeEach(async () => {
  const root = temporaryDirectory()
  for (const folder of ['etc', 'var']) mkdirSync(join(root, folder))
  places = { defaultConfig: join(root, 'etc', 'postern.yaml'), defaultState: join(root, 'var') }
  devices = join(root, 'etc', 'devices')
  password = join(root, 'password')
  writeFileSync(password, `${HASHED_PASSWORD}\n`, { mode: 0o600 })
  device = await startDevice()
})

const postern = (...args: readonly string[]) => runInProcess(args, places)

const init = (name: string, ...args: readonly string[]) =>
  postern('init', '--instance', name, '--url', device.url, '--password-file', password, ...args)

const fileOf = (name: string): string => join(devices, `${name}.yaml`)
const read = (name: string): Config => loadConfig({ file: readConfigFile(fileOf(name)) })

/** The public and the admin port of an instance. */
const portsOf = (name: string): readonly number[] =>
  [read(name).listen.address, read(name).admin.address].map((address) =>
    address !== 'off' && address.kind === 'tcp' ? address.port : 0,
  )

/** Writes the file of an instance with these addresses. */
function write(name: string, listenAddress: string, adminAddress: string, more: object = {}): void {
  mkdirSync(devices, { recursive: true })
  const config = {
    upstream: { url: device.url },
    password: { file: password },
    listen: { address: listenAddress, tls: 'off' },
    admin: { address: adminAddress },
    ...more,
  }
  writeFileSync(fileOf(name), JSON.stringify(config))
}

function parsed(text: string): ListenAddress {
  const result = parseAddress(text)
  return 'value' in result ? result.value : expect.fail(result.problem)
}

describe('H322 the name of an instance', () => {
  it.each(['boiler', 'rack-3-pdu', '7', 'a'.repeat(63)])('can be %s', (name) => {
    expect(instanceOf(name, {})).toEqual({
      name,
      config: `/etc/postern/devices/${name}.yaml`,
      stateDir: `/var/lib/postern/devices/${name}`,
    })
  })

  it.each([
    '',
    '..',
    'a/b',
    '../postern',
    'Boiler',
    'a b',
    'a.b',
    '-a',
    'a-',
    'a_b',
    'a\n',
    'ä',
    '%i',
    'a'.repeat(64),
  ])('cannot be %j', async (name) => {
    const { code, stdout, stderr } = await postern('status', '--instance', name)
    expect([code, stdout, stderr]).toEqual([
      2,
      '',
      expect.stringContaining('--instance: must be 1 to 63 of a-z'),
    ])
    expect(await init(name)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--instance: must be'),
    })
    expect(readdirSync(join(devices, '..'))).toEqual([])
  })

  it('is that of a file with this ending, and of no other', () => {
    mkdirSync(devices)
    const others = ['Boiler.yaml', '.yaml', 'boiler.password', 'a.b.yaml', 'x.yml', '.init.lock']
    for (const file of ['pump.yaml', 'boiler.yaml', ...others]) writeFileSync(join(devices, file), '')
    expect(readInstances(places).map(({ name }) => name)).toEqual(['boiler', 'pump'])
  })
})

describe('H322 `--instance`', () => {
  it.each(['check', 'status', 'explain', 'revoke', 'issue', 'retry', 'healthy', 'propose'])(
    'of %s names the instances that exist for one that does not, and goes with no `--config`',
    async (command) => {
      const more = command === 'revoke' ? ['--all'] : command === 'issue' ? ['--for', '1h'] : []
      const none = await postern(command, ...more, '--instance', 'boilr')
      expect([none.code, none.stderr]).toEqual([
        2,
        `postern ${command}: --instance: no ${fileOf('boilr')}; there is none yet; postern init --instance boilr writes it\n`,
      ])
      for (const name of ['pump', 'boiler']) write(name, '127.0.0.1:0', '127.0.0.1:0')
      const { code, stderr } = await postern(command, ...more, '--instance', 'boilr')
      expect([code, stderr]).toEqual([2, expect.stringContaining('; the instances are boiler, pump; ')])
      const both = await postern(command, ...more, '--instance', 'boiler', '--config', fileOf('pump'))
      expect([both.code, both.stderr]).toEqual([
        2,
        expect.stringMatching(/--instance <name>' cannot be used with .*--config/),
      ])
    },
  )

  it('of serve reads the folder beside the usual configuration', async () => {
    const { code, stderr } = await runPostern(['serve', '--instance', 'no-such-device'])
    const file = '/etc/postern/devices/no-such-device.yaml'
    expect([code, stderr]).toEqual([2, expect.stringContaining(`postern serve: --instance: no ${file}; `)])
  })

  it('finds the running sidecar by its state folder, whatever `state_dir` its file says', async () => {
    const stateDir = join(places.defaultState, 'devices', 'boiler')
    const site = await prepareSite({ config: { state_dir: stateDir } })
    const sidecar: Serving = await site.serveHere()
    const accessToken = (await sidecar.grant()).access_token
    write('boiler', '127.0.0.1:0', sidecar.adminUrl.replace('http://', ''), { state_dir: '/nowhere' })
    write('pump', '127.0.0.1:0', '127.0.0.1:0', { state_dir: stateDir })

    const status = await postern('status', '--instance', 'boiler')
    expect([status.code, status.stdout]).toEqual([0, expect.stringContaining('1 grant, 1 access token')])
    expect(await postern('healthy', '--instance', 'boiler')).toMatchObject({ code: 0 })
    expect(await postern('explain', '--instance', 'boiler')).toMatchObject({ code: 0 })
    expect(await postern('issue', '--instance', 'boiler', '--for', '1h')).toMatchObject({ code: 0 })
    const other = await postern('revoke', '--all', '--instance', 'pump')
    const pumpState = join(places.defaultState, 'devices', 'pump')
    expect([other.code, other.stderr]).toEqual([
      1,
      expect.stringContaining(`no sidecar is running on ${pumpState} `),
    ])
    expect(await sidecar.use(accessToken)).toBe(200)
    expect(await postern('revoke', '--all', '--instance', 'boiler')).toMatchObject({
      stdout: '2 grants revoked\n',
    })
    expect(await sidecar.use(accessToken)).toBe(401)
    // A flag is more than the instance.
    const set = await postern('status', '--instance', 'pump', '--set', `state_dir=${stateDir}`)
    expect(set).toMatchObject({ code: 0 })
  })

  it('of propose reads the `allow` of that device', async () => {
    write('boiler', '127.0.0.1:0', '127.0.0.1:0', {
      password: undefined,
      passwords: [{ name: 'monitor', file: password, allow: [{ paths: ['/old'] }] }],
    })
    const log = join(devices, 'log')
    const request = {
      method: 'GET',
      path: '/new',
      status: 200,
      endpoint: 'api',
      name: 'monitor',
      grant: 'monitor.0123456789abcdef',
    }
    const line = { level: 30, time: '2026-11-26T10:00:00.000Z', msg: 'request', ...request }
    writeFileSync(log, `${JSON.stringify(line)}\n`)
    const { stdout, stderr } = await postern('propose', log, '--instance', 'boiler')
    expect([stdout, stderr]).toEqual([expect.stringContaining('Of the present allow, no request used'), ''])
  })
})

describe('H323 postern init --instance', () => {
  it('writes a configuration that passes check, with the state folder and the password of that device', async () => {
    const { code, stdout } = await init('boiler')
    expect([code, stdout]).toEqual([0, expect.stringContaining(`\nWritten: ${fileOf('boiler')}\n`)])
    expect(stdout).toContain('\n  runuser -u postern -- postern check --instance boiler\n')
    expect(stdout).toContain('\n  systemctl enable --now postern-device@boiler\n')
    expect(stdout).toContain('\n  postern try / --instance boiler\n')
    expect(readFileSync(fileOf('boiler'), 'utf8')).toContain('check --instance boiler\n')
    expect(read('boiler').stateDir).toBe(join(places.defaultState, 'devices', 'boiler'))
    expect(statSync(devices).mode & 0o777).toBe(0o750)
    expect(await postern('check', '--quiet', '--instance', 'boiler')).toMatchObject({ code: 0 })
  })

  it('gives each a pair of ports that no other configuration has, also one with a mistake', async () => {
    await init('boiler')
    const [listenPort = 0, adminPort = 0] = portsOf('boiler')
    expect(adminPort - listenPort).toBe(1000)
    write('pump', `[::]:${listenPort + 1}`, 'off')
    write('kiln', '127.0.0.1:0', `127.0.0.1:${listenPort + 2}`, { upstraem: 1 })
    write('saw', 'unix:/run/saw', `127.0.0.1:${adminPort + 3}`)
    writeFileSync(
      places.defaultConfig,
      JSON.stringify({
        upstream: { url: device.url },
        password: { file: password },
        listen: { address: `0.0.0.0:${listenPort + 4}` },
      }),
    )
    expect(await init('fan')).toMatchObject({ code: 0 })
    // Not "the next one": a program of this machine may have had a lower port for a moment.
    const [next = 0] = portsOf('fan')
    expect([0, 1, 2, 3, 4].map((more) => listenPort + more)).not.toContain(next)
  })

  it('takes no port that a program uses now', async () => {
    await init('boiler')
    const [, adminPort = 0] = portsOf('boiler')
    const server = createServer()
    closeLater(() => void server.close())
    let port = adminPort + 1
    // Another program may have the next one already.
    while (!(await listen(server, parsed(`127.0.0.1:${port}`)).catch(() => false))) port += 1
    await init('pump')
    expect(portsOf('pump')).not.toContain(port)
  })

  it('names a configuration whose ports it cannot know', async () => {
    mkdirSync(devices)
    writeFileSync(fileOf('kiln'), 'listen: [')
    const { code, stderr } = await init('boiler')
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining(`${fileOf('kiln')} cannot be read or has a mistake`),
    ])
  })

  it('gives ten that are made at once ten pairs', async () => {
    const names = Array.from({ length: 10 }, (_, i) => `device-${i}`)
    for (const { code, stderr } of await Promise.all(names.map((name) => init(name, '--skip-checks')))) {
      expect([code, stderr]).toEqual([0, ''])
    }
    expect(new Set(names.flatMap(portsOf)).size).toBe(20)
  })

  it('waits while another one chooses, and then sees what that has written', async () => {
    await init('boiler')
    const [listenPort = 0] = portsOf('boiler')
    const release = lockStateFolder(join(devices, '.init.lock'), 0) ?? expect.fail('the lock is held')
    const made = init('fan', '--skip-checks')
    // Without the wait it has written its file by then, with these ports.
    await Promise.race([made, delay(500)])
    expect(readInstances(places).map(({ name }) => name)).toEqual(['boiler'])
    write('pump', `0.0.0.0:${listenPort + 1}`, 'off')
    release()
    expect(await made).toMatchObject({ code: 0 })
    expect([listenPort, listenPort + 1]).not.toContain(portsOf('fan')[0])
  })

  it('overwrites nothing, and goes with no `--config`', async () => {
    await init('boiler')
    const before = readFileSync(fileOf('boiler'), 'utf8')
    const { code, stderr } = await init('boiler')
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('overwrites nothing; edit it, remove it, or choose another name'),
    ])
    expect(readFileSync(fileOf('boiler'), 'utf8')).toBe(before)
    expect(await init('pump', '--config', 'x.yaml')).toMatchObject({ code: 2 })
  })
})

describe('H324 check', () => {
  const check = async (...args: readonly string[]) =>
    (await postern('check', ...args)).stdout.split('\n').filter((line) => line.includes('other instances'))

  it('names the file that has the same public or admin address', async () => {
    write('boiler', '127.0.0.1:18501', '127.0.0.1:19501')
    write('pump', '0.0.0.0:18501', '127.0.0.1:19502')
    write('kiln', '127.0.0.1:19501', '127.0.0.1:19503')
    expect(await check('--instance', 'boiler')).toEqual([
      `WARNING other instances: admin.address 127.0.0.1:19501 is also listen.address in ${fileOf('kiln')}; ` +
        `listen.address 127.0.0.1:18501 is also listen.address in ${fileOf('pump')}`,
    ])
    expect(await check('--config', fileOf('kiln'))).toEqual([
      expect.stringContaining(`listen.address 127.0.0.1:19501 is also admin.address in ${fileOf('boiler')}`),
    ])
  })

  it('counts the service of postern.yaml once that names a device, and compares no draft', async () => {
    write('boiler', '0.0.0.0:8443', '127.0.0.1:19501')
    const text = readFileSync(fileOf('boiler'))
    writeFileSync(places.defaultConfig, readFileSync(join(import.meta.dirname, '../../deploy/postern.yaml')))
    expect(await check('--instance', 'boiler')).toEqual([])
    writeFileSync(
      places.defaultConfig,
      JSON.stringify({ upstream: { url: device.url }, password: { file: password } }),
    )
    expect(await check('--instance', 'boiler')).toEqual([
      expect.stringContaining(`in ${places.defaultConfig}`),
    ])
    const draft = join(devices, '..', 'draft.yaml')
    writeFileSync(draft, text)
    expect(await check('--config', draft)).toEqual([])
  })

  it('says of a folder that it cannot read that it cannot, but of a draft elsewhere nothing', async () => {
    const own = JSON.stringify({ upstream: { url: device.url }, password: { file: password } })
    writeFileSync(places.defaultConfig, own)
    // A folder of mode 0 would not do: root reads it.
    writeFileSync(devices, '')
    expect(await check('--config', places.defaultConfig)).toEqual([
      `WARNING other instances: cannot read the folder ${devices} (ENOTDIR)`,
    ])
    const draft = join(devices, '..', 'draft.yaml')
    writeFileSync(draft, own)
    expect(await check('--config', draft)).toEqual([])
  })

  it('says which others it compared, and of which it knows no address', async () => {
    write('boiler', '127.0.0.1:18501', '127.0.0.1:19501')
    write('pump', '127.0.0.1:18502', '127.0.0.1:19502')
    expect(await check('--instance', 'boiler')).toEqual([
      'ok      other instances: none has an address of this one: pump',
    ])
    writeFileSync(fileOf('pump'), 'listen: [')
    expect(await check('--instance', 'boiler')).toEqual([
      `WARNING other instances: the addresses in ${fileOf('pump')} are not known`,
    ])
    expect(neighboursOf(fileOf('boiler'), places)).toEqual([{ file: fileOf('pump'), addresses: undefined }])
  })

  it('counts a link to the file of another one, and not the file that it is given by a link', async () => {
    write('boiler', '127.0.0.1:18501', '127.0.0.1:19501')
    symlinkSync(fileOf('boiler'), fileOf('pump'))
    for (const [name, other] of [
      ['boiler', 'pump'],
      ['pump', 'boiler'],
    ] as const)
      expect(await check('--instance', name)).toEqual([
        expect.stringContaining(`listen.address 127.0.0.1:18501 is also listen.address in ${fileOf(other)}`),
      ])
    rmSync(fileOf('pump'))
    const link = join(temporaryDirectory(), 'link.yaml')
    symlinkSync(fileOf('boiler'), link)
    expect(neighboursOf(link, places)).toEqual([])
  })

  it('waits for no pipe among them', () => {
    needs('mkfifo')
    write('boiler', '127.0.0.1:18501', '127.0.0.1:19501')
    execFileSync('mkfifo', [fileOf('pump')])
    // Without a writer, a reader would wait for ever, and so would the test.
    const writer = spawn('sh', ['-c', `cat ${fileOf('boiler')} > ${fileOf('pump')}`])
    closeLater(() => void writer.kill())
    expect(neighboursOf(fileOf('boiler'), places)).toEqual([{ file: fileOf('pump'), addresses: undefined }])
  })

  it.each([
    ['127.0.0.1:1', '127.0.0.1:1', true],
    ['0.0.0.0:1', '127.0.0.1:1', true],
    ['[::]:1', '127.0.0.1:1', true],
    ['[::]:1', '0.0.0.0:1', true],
    ['[::ffff:127.0.0.1]:1', '127.0.0.1:1', true],
    ['localhost:1', '[::1]:1', true],
    ['unix:/a', 'unix:/a', true],
    ['0.0.0.0:1', '[::1]:1', false],
    ['127.0.0.1:1', '127.0.0.2:1', false],
    ['127.0.0.1:1', '127.0.0.1:2', false],
    ['127.0.0.1:0', '127.0.0.1:0', false],
    ['unix:/a', 'unix:/b', false],
    ['fd:3', 'fd:3', false],
    ['fd:3', '0.0.0.0:1', false],
  ])('takes %s and %s for the same: %s', (one, other, same) => {
    expect([collide(parsed(one), parsed(other)), collide(parsed(other), parsed(one))]).toEqual([same, same])
  })
})
