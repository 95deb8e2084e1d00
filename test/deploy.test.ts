import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { instanceOf } from '../src/commands/instance.ts'
import { STOP_BOUNDS } from '../src/compose/drain.ts'
import { loadConfig, readConfigFile } from '../src/config/load.ts'
import { createMetrics } from '../src/record/metrics.ts'
import { shippedArguments } from './build/shipped.ts'
import { makeCertificate, temporaryDirectory } from './support/certificate.ts'
import { closeLater } from './support/cleanup.ts'
import { unusedPort } from './support/raw.ts'
import { readTree } from './support/source-tree.ts'
import { needs, run } from './support/tools.ts'

const root = join(import.meta.dirname, '..')
const inDeploy = (name: string): string => join(root, 'deploy', name)
const read = (name: string): string => readFileSync(inDeploy(name), 'utf8')

test('the first configuration loads as written', () => {
  const config = loadConfig({ file: readConfigFile(inDeploy('postern.yaml')), env: {}, sets: [] })
  expect(config.upstream.url.origin).toBe('http://192.0.2.10')
  expect(config.password).toEqual({ file: '/etc/postern/password' })
})

test('the first configuration has the state folder of the unit, so that status and revoke find the service', () => {
  const { stateDir } = loadConfig({ file: readConfigFile(inDeploy('postern.yaml')), env: {}, sets: [] })
  const [, folder] = /^StateDirectory=(\S+)$/m.exec(read('postern.service')) ?? []
  expect(stateDir).toBe(`/var/lib/${folder}`)
})

test('every commented-out key of the first configuration loads, and those that it calls defaults are defaults', () => {
  const text = read('postern.yaml')
  const commented = /^( +)# ((?:[a-z_]+:( .*)?)|(?: +X-Api-Key: .*))$/gm
  const opened = text.replace(commented, '$1$2').replace(/^# (realm: .*)$/m, '$1')
  expect(opened).toContain('\n  max_in_flight: {min: 1, max: 4}\n')
  expect(opened).toContain('\nrealm: device\n')
  const withoutChoices = opened.replace(
    /^ +(tls|trusted_proxies|password_file|headers|X-Api-Key|auth|health): .*\n?/gm,
    '',
  )
  const load = (yaml: string) => loadConfig({ file: { path: 'postern.yaml', text: yaml }, env: {}, sets: [] })
  expect(load(opened).listen.trustedProxies).toEqual(['10.0.0.0/8'])
  expect(load(opened).upstream.headers).toEqual({
    'X-Api-Key': { file: '/etc/postern/device-key' },
  })
  expect(load(opened).upstream.auth).toMatchObject({ kind: 'digest', user: 'admin' })
  expect(load(withoutChoices)).toEqual(load(text))
})

test('systemd finds no fault in the units, with and without the drop-in', async () => {
  needs('systemd-analyze')
  const units = temporaryDirectory()
  // systemd looks for the program, which is not installed here.
  const service = read('postern.service').replace('ExecStart=postern ', 'ExecStart=/bin/true ')
  writeFileSync(join(units, 'postern.service'), service)
  const ofDevice = read('postern-device@.service').replace('ExecStart=postern ', 'ExecStart=/bin/true ')
  writeFileSync(join(units, 'postern-device@boiler.service'), ofDevice)
  copyFileSync(inDeploy('postern-devices.slice'), join(units, 'postern-devices.slice'))
  copyFileSync(inDeploy('postern.socket'), join(units, 'postern.socket'))
  copyFileSync(inDeploy('pam/postern-check.socket'), join(units, 'postern-check.socket'))
  const check = read('pam/postern-check@.service').replace(/^ExecStart=.*$/m, 'ExecStart=/bin/true')
  writeFileSync(join(units, 'postern-check@.service'), check)
  const verify = () =>
    run('systemd-analyze', [
      'verify',
      '--man=no',
      join(units, 'postern.service'),
      join(units, 'postern-device@boiler.service'),
      join(units, 'postern-devices.slice'),
      join(units, 'postern.socket'),
      join(units, 'postern-check.socket'),
    ])
  expect(await verify()).toEqual({ code: 0, stdout: '', stderr: '' })
  mkdirSync(join(units, 'postern.service.d'))
  copyFileSync(inDeploy('postern-credential.conf'), join(units, 'postern.service.d', 'credential.conf'))
  expect(await verify()).toEqual({ code: 0, stdout: '', stderr: '' })
})

test.each(['postern.service', 'postern-device@.service'])(
  'systemd rates the exposure of %s 1.1 of 10 at most',
  async (name) => {
    needs('systemd-analyze')
    // systemd rates no template, only an instance.
    const unit = join(temporaryDirectory(), name.replace('@', '@1'))
    copyFileSync(inDeploy(name), unit)
    const rated = await run('systemd-analyze', ['security', '--offline=true', '--threshold=11', unit])
    expect(rated.stdout).toMatch(/Overall exposure level for postern(?:-device@1)?.service: [01]\.\d/)
    expect(rated.code).toBe(0)
  },
)

test('H325 the unit of a device differs from that of one only in what belongs to an instance', () => {
  const lines = (name: string): readonly string[] => read(name).match(/^\w+=.*$/gm) ?? []
  const [unit, template] = [lines('postern.service'), lines('postern-device@.service')]
  // All commands name the device alike: `src/commands/instance.ts` says what that means.
  const named = template.map((line) => line.replaceAll('--instance %i', '--config /etc/postern/postern.yaml'))
  const only = (these: readonly string[], others: readonly string[]): readonly string[] =>
    these.filter((line) => !others.includes(line) && !/^(?:Description|Documentation)=/.test(line))
  expect(only(unit, named)).toEqual(['StateDirectory=postern', 'MemoryMax=512M'])
  expect(only(named, unit)).toEqual([
    'SyslogIdentifier=postern-%i',
    'TimeoutStartSec=10min',
    'StateDirectory=postern/devices/%i',
    'MemoryMax=128M',
    'Slice=postern-devices.slice',
  ])
  expect(template.filter((line) => line.includes('--instance %i'))).toHaveLength(3)
  const { config, stateDir } = instanceOf('boiler', {})
  expect(config).toBe('/etc/postern/devices/boiler.yaml')
  const folder = template.find((line) => line.startsWith('StateDirectory='))?.replace(/^.*=/, '/var/lib/')
  expect(folder?.replace('%i', 'boiler')).toBe(stateDir)
})

test('H325 the comments of the unit of a device are those of the other, but for what belongs to an instance', () => {
  const comments = (name: string): readonly string[] => (read(name).match(/^#.*$/gm) ?? []).slice(3)
  const known = new Set(read('postern.service').match(/^#.*$/gm))
  const own = comments('postern-device@.service').filter((line) => !known.has(line))
  for (const line of own) expect(line).toMatch(/^# Of the instance: /)
  expect(own).toHaveLength(4)
})

/** Runs a command of the unit for a process, with a `postern` that exits with the codes, one after the other. */
async function runOfUnit(key: string, service: ChildProcess, ...codes: readonly number[]): Promise<number> {
  const [, command = expect.fail(`${key} is not a shell command`)] =
    new RegExp(`^${key}=/bin/sh -c '(.*)'$`, 'm').exec(read('postern.service')) ?? []
  const bin = temporaryDirectory()
  const program = `#!/bin/sh\nread code < ${bin}/codes\nsed -i 1d ${bin}/codes\nexit $code\n`
  writeFileSync(join(bin, 'postern'), program, { mode: 0o755 })
  writeFileSync(join(bin, 'codes'), codes.map((code) => `${code}\n`).join(''))
  const env = { MAINPID: String(service.pid), PATH: `${bin}:${process.env.PATH}` }
  const { code, stdout, stderr } = await run('/bin/sh', ['-c', command.replaceAll('$$', '$')], { env })
  expect([stdout, stderr]).toEqual(['', ''])
  return code
}

function startedService(): { readonly service: ChildProcess; readonly ended: Promise<unknown[]> } {
  const service = spawn(process.execPath, ['-e', 'setInterval(() => {}, 60_000)'])
  closeLater(() => void service.kill('SIGKILL'))
  return { service, ended: once(service, 'exit') }
}

test('H76 the unit reloads by SIGHUP what a check accepts, with or without warnings of its state', async () => {
  for (const checked of [0, 1]) {
    const { service, ended } = startedService()
    expect(await runOfUnit('ExecReload', service, checked)).toBe(0)
    expect(await ended).toEqual([null, 'SIGHUP'])
  }
  const { service } = startedService()
  expect(await runOfUnit('ExecReload', service, 2)).not.toBe(0)
  expect(service.signalCode).toBe(null)
})

test('H76 a start of the unit ends when the sidecar responds, and fails when it has ended', async () => {
  const { service, ended } = startedService()
  expect(await runOfUnit('ExecStartPost', service, 1, 1, 0)).toBe(0)
  // Without an address to ask.
  expect(await runOfUnit('ExecStartPost', service, ...Array<number>(10).fill(2))).toBe(0)
  service.kill('SIGKILL')
  await ended
  for (const asked of [1, 2]) expect(await runOfUnit('ExecStartPost', service, asked)).toBe(1)
})

test('the unit permits the JIT of V8, and does not restart after exit code 2', () => {
  const unit = read('postern.service')
  expect(unit).not.toMatch(/^MemoryDenyWriteExecute=/m)
  expect(unit).toMatch(/^RestartPreventExitStatus=2$/m)
  expect(unit).toMatch(/^ExecStart=postern serve --config \/etc\/postern\/postern\.yaml$/m)
  expect(unit).toMatch(/^User=postern$/m)
})

test('the credential drop-in sets a variable that the configuration knows', () => {
  const [, name = ''] = /^Environment=(\w+)=%d\/password$/m.exec(read('postern-credential.conf')) ?? []
  const config = loadConfig({
    file: readConfigFile(inDeploy('postern.yaml')),
    env: { [name]: '/run/credentials/postern.service/password', STATE_DIRECTORY: '/var/lib/postern' },
    sets: [],
  })
  expect(config.password).toEqual({ file: '/run/credentials/postern.service/password' })
  expect(config.stateDir).toBe('/var/lib/postern')
})

/** Starts the program under the permissions of the unit, with the configuration in `folder` and a socket. Asks it for `/`. */
async function activate(folder: string, passwordFile: string, listener = 'listen') {
  writeFileSync(passwordFile, 'secret\n', { mode: 0o600 })
  const port = await unusedPort()
  const settings = [
    'upstream.url=http://127.0.0.1:9',
    `password.file=${passwordFile}`,
    `state_dir=${join(folder, 'state')}`,
    'listen.address=127.0.0.1:0',
    'admin.address=off',
    `${listener}.address=fd:3`,
  ]
  mkdirSync(join(folder, 'state'))
  const child = spawn('systemd-socket-activate', [
    `--listen=127.0.0.1:${port}`,
    process.execPath,
    ...shippedArguments({ configuration: folder, state: join(folder, 'state') }),
    'serve',
    ...settings.flatMap((setting) => ['--set', setting]),
  ])
  const exited = once(child, 'exit')
  closeLater(async () => {
    child.kill()
    await exited
  })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text
  })
  await once(child.stderr, 'data') // "Listening on 127.0.0.1:... as 3."
  const status = Promise.withResolvers<number | undefined>()
  request({ port, host: '127.0.0.1', path: '/', rejectUnauthorized: false, agent: false }, (response) => {
    response.resume()
    status.resolve(response.statusCode)
  })
    .on('error', () => status.resolve(undefined))
    .end()
  return { child, exited, status: await status.promise, stderr: () => stderr }
}

test('a socket of the service manager is served under the permissions of the unit', async () => {
  needs('systemd-socket-activate')
  const folder = temporaryDirectory()
  const { child, exited, status } = await activate(folder, join(folder, 'password'))
  expect(status).toBe(401)
  child.kill('SIGTERM')
  expect(await exited).toEqual([0, null])
})

test.each(['listen', 'admin'])(
  'a file outside of the permitted folders is refused with the missing flag if a restart would close the socket of %s.address',
  async (listener) => {
    needs('systemd-socket-activate')
    const file = join(temporaryDirectory(), 'password')
    const { exited, status, stderr } = await activate(temporaryDirectory(), file, listener)
    expect(status).toBe(undefined)
    expect(await exited).toEqual([2, null])
    expect(stderr()).toMatch(/^postern serve: a socket that the service manager passes does not/m)
    expect(stderr()).toContain(`add --allow-fs-read=${file} to NODE_OPTIONS in the unit`)
  },
)

test('H165 Prometheus accepts the scrape configuration and the alerts, and each alert fires when it should', async () => {
  needs('promtool')
  const fleet = join(temporaryDirectory(), 'prometheus.yml')
  writeFileSync(fleet, read('prometheus.yml').replace(/^( +)# ((?: *-| {2}).*)$/gm, '$1$2'))
  copyFileSync(inDeploy('postern.rules.yml'), join(fleet, '../postern.rules.yml'))
  expect(readFileSync(fleet, 'utf8')).toMatch(/^ {10}- 192\.0\.2\.22:9464$/m)
  expect(readFileSync(fleet, 'utf8')).toMatch(/^ {10}instance: pump$/m)
  const overTls = join(fleet, '../tls.yml')
  const { certFile } = await makeCertificate()
  const opened = read('prometheus.yml').replace(/^( +)# (scheme|tls_config): /gm, '$1$2: ')
  writeFileSync(overTls, opened.replace('/etc/prometheus/postern.pem', certFile))
  expect(readFileSync(overTls, 'utf8')).toMatch(/^ {4}scheme: https$/m)
  expect(readFileSync(overTls, 'utf8')).toContain(`    tls_config: {ca_file: ${certFile}}\n`)
  for (const check of [
    ['check', 'config', inDeploy('prometheus.yml')],
    ['check', 'config', fleet],
    ['check', 'config', overTls],
    ['check', 'rules', inDeploy('postern.rules.yml')],
    ['test', 'rules', inDeploy('postern.rules.test.yml')],
  ]) {
    const { code, stdout, stderr } = await run('promtool', check)
    expect(stdout + stderr).not.toContain('FAILED')
    expect([check, code]).toEqual([check, 0])
  }
})

test('the alerts and their tests name only metrics that the sidecar exports', async () => {
  const metrics = createMetrics({ version: '0', node: '0' })
  metrics.sharedStore()
  const exported = await metrics.text()
  const known = new Set([...exported.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name))
  const named = `${read('postern.rules.yml')}${read('postern.rules.test.yml')}${read('postern.yaml')}${read('old-firmware.md')}`
  const cited = [...named.matchAll(/postern_\w+/g)].map(([name]) => name.replace(/_(bucket|sum|count)$/, ''))
  expect(cited.length).toBeGreaterThan(10)
  for (const metric of cited) expect(known).toContain(metric)
})

test.each(['postern.service', 'postern-device@.service', 'Dockerfile'])(
  'H248 %s takes the heap from the memory that the process has',
  (file) => {
    const text = read(file)
    const [, share] = /--max-old-space-size-percentage=(\d+)/.exec(text) ?? []
    // The rest is for what clients hold outside of the heap, and for the program itself.
    expect(Number(share)).toBeLessThanOrEqual(40)
    // With both, the percentage would count.
    expect(text).not.toMatch(/--max-old-space-size=/)
  },
)

test('what stops the process waits for longer than a stop takes', () => {
  const waits = [
    ...['postern.service', 'postern-device@.service'].map((unit) =>
      /^TimeoutStopSec=(\d+)$/m.exec(read(unit)),
    ),
    ...['compose.yaml', 'fleet/compose.yaml'].map((file) =>
      /^ +stop_grace_period: (\d+)s$/m.exec(read(file)),
    ),
    /^ +terminationGracePeriodSeconds: (\d+)$/m.exec(read('kubernetes/deployment.yaml')),
  ]
  const { grace, lastResponses } = STOP_BOUNDS
  for (const wait of waits) expect(1_000 * Number(wait?.[1])).toBeGreaterThan(grace + lastResponses + 1_000)
})

test('no runtime package has an install script', () => {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; optional?: boolean; hasInstallScript?: boolean }>
  }
  const shipped = Object.entries(lock.packages).filter(([path, { dev }]) => path !== '' && dev !== true)
  expect(shipped.length).toBeGreaterThan(20)
  expect(shipped.filter(([, { hasInstallScript }]) => hasInstallScript === true)).toEqual([])
})

test.each<[string, string, number, string]>([
  ['a registry without findings', 'echo "{}"', 0, 'nothing found'],
  ['a registry without advisories', 'echo "{\\"error\\": {}}"; exit 1', 0, 'NOT AUDITED'],
  ['a machine without a network', 'exit 1', 0, 'NOT AUDITED'],
  [
    'a known vulnerability',
    'echo "{\\"auditReportVersion\\": 2}"; exit 1',
    1,
    'known vulnerabilities (high): FAILED',
  ],
  [
    'a forged package',
    'case "$*" in *signatures*) echo "{\\"invalid\\": [{}], \\"missing\\": []}"; exit 1;; esac',
    1,
    'signatures: FAILED',
  ],
])('the audit of CI handles %s', async (_what, npm, code, verdict) => {
  const bin = temporaryDirectory()
  writeFileSync(join(bin, 'npm'), `#!/bin/sh\n${npm}\n`, { mode: 0o755 })
  const audit = await run(join(root, '.ci/audit'), [], {
    env: { PATH: `${bin}:${process.env.PATH}` },
  })
  expect([audit.code, audit.stdout]).toEqual([code, expect.stringContaining(verdict)])
})

test('CI installs every program that a test needs', () => {
  const every = [
    'bash',
    'dpkg-deb',
    'git',
    'gunzip',
    'mkfifo',
    'npm',
    'prlimit',
    'script',
    'setpriv',
    'systemd-socket-activate',
    'tar',
  ]
  const installed = readFileSync(join(root, '.ci/run'), 'utf8').matchAll(/([\w-]+):[\w-]+(?=[ \n])/g)
  const known = [...every, ...[...installed].map(([, program]) => program)]
  const asked = [...readTree(root, 'test').values()].flatMap((text) => [
    ...text.matchAll(/\bneeds\('([^']+)'\)/g),
  ])
  expect(asked.length).toBeGreaterThan(10)
  expect(asked.map(([, program]) => program).filter((program) => !known.includes(program))).toEqual([])
})

test('the page of the folder lists every file in it', () => {
  const [, table = ''] = /\n\| file \| what it is \|\n((?:\|.*\n)+)/.exec(read('README.md')) ?? []
  const listed = [...table.matchAll(/`([\w.@-]+)\/?`/g)].map(([, name]) => name)
  const present = readdirSync(join(root, 'deploy')).filter((name) => name !== 'README.md')
  expect(listed.toSorted()).toEqual(present.toSorted())
})
