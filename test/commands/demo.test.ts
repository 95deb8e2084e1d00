import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { beforeEach, expect, test, vi } from 'vitest'
import { reportFailure } from '../../src/commands/command.ts'
import { type DemoOptions, demoCommand, generatePassword } from '../../src/commands/demo.ts'
import { loadConfig, readConfigFile } from '../../src/config/load.ts'
import { openLogOn } from '../../src/record/log.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { realClock } from '../support/clock.ts'
import { PATIENCE } from '../support/running-test.ts'
import { needs, run } from '../support/tools.ts'

interface Demo {
  /** Everything that the demo prints. */
  readonly printed: Promise<string>
  readonly stop: () => void
  readonly exit: Promise<number>
  readonly errors: () => string
}

let temporary: string

beforeEach(() => {
  // A shell would split this name if a printed command did not quote it.
  temporary = join(temporaryDirectory(), "it's here")
  mkdirSync(temporary)
  vi.stubEnv('TMPDIR', temporary)
  return () => vi.unstubAllEnvs()
})

/** Where time stands still for windows and lifetimes, while timers run. */
const START = 1_000_000

function startDemo(
  options: DemoOptions,
  program: { readonly node: string | undefined } = { node: process.execPath },
  onLog: (line: string) => void = () => {},
): Demo {
  const printed = Promise.withResolvers<string>()
  const stopped = Promise.withResolvers<void>()
  let errors = ''
  const stderr = {
    write: (text: string) => {
      errors += text
      printed.resolve('')
    },
  }
  const exit = demoCommand(options, {
    stdout: { write: (text) => printed.resolve(text) },
    stderr,
    openLog: async ({ level }) => openLogOn(level, { write: onLog }),
    // However slow the machine is, the commands come within one window.
    clock: { ...realClock(), monotonic: () => START },
    node: program.node,
    program: [process.execPath, join(import.meta.dirname, '../../src/main.ts')],
    onStop: (listener) => stopped.promise.then(listener),
  }).catch((error: unknown) => reportFailure('demo', error, { stderr, env: {} }))
  closeLater(async () => {
    stopped.resolve()
    await exit
  })
  return { printed: printed.promise, stop: () => stopped.resolve(), exit, errors: () => errors }
}

function printedValue(printed: string, name: string): string {
  return new RegExp(`^ {2}${name} +(.+?)(?: {3}\\(.*)?$`, 'm').exec(printed)?.[1] ?? `no ${name}`
}

test.each([
  { where: 'a checkout', node: process.execPath, passed: 52 },
  { where: 'the executable, without Node.js for the WebSocket', node: undefined, passed: 53 },
])(
  'the printed commands of $where work when a shell runs them from top to bottom',
  async ({ node, passed }) => {
    needs('curl')
    const printed = await startDemo({ port: 0, adminPort: 0 }, { node }).printed
    const script = printed.slice(printed.indexOf('# Set the URL'), printed.indexOf('Ctrl-C stops'))
    const { stdout, stderr } = await run('sh', ['-c', script], { timeout: 4 * PATIENCE })
    expect(stderr).toBe('')

    expect(stdout).toContain('"access_token":"')
    expect(stdout).toContain('"model":"PowerDist 8"')
    expect(stdout).toContain('{"id":1,"label":"outlet 1","enabled":false,"watts":0}\n')
    expect(stdout).toMatch(/^HTTP\/\S+ 401/m)
    expect(stdout).toContain('"size":8000000')
    expect(stdout.match(/^event: power$/gm)).toHaveLength(3)
    expect(stdout).toContain(`${printedValue(printed, 'API')}/login.html`)
    expect(stdout).toMatch(/\[\{"id":1,[^[]*\}\]/)
    expect(stdout.match(/"refresh_token":"/g)).toHaveLength(2)
    const [ok, limited] = [/^ *(\d+) 200$/m, /^ *(\d+) 429$/m].map((line) => Number(line.exec(stdout)?.[1]))
    expect([ok, limited]).toEqual([passed, 70 - passed])
    expect(stdout).toContain(`postern_rate_limited_total{endpoint="api"} ${70 - passed}`)
    expect(stdout).toContain('Refused with 429')
    expect(printedValue(printed, 'Live page')).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/)
  },
)

test('H236 what npm start prints works in another folder, and says last what comes next', async () => {
  needs('curl')
  const root = join(import.meta.dirname, '../..')
  // As the script `start` of package.json.
  const words = ['-r', './src/node-version.cjs', 'src/main.ts', 'demo', '--port', '0', '--admin-port', '0']
  const demo = spawn(process.execPath, words, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  const exit = once(demo, 'exit')
  closeLater(async () => {
    demo.kill('SIGTERM')
    await exit
  })
  let printed = ''
  for await (const chunk of demo.stdout.iterator({ destroyOnReturn: false })) {
    printed += String(chunk)
    if (/^\S+ .* init$/m.test(printed)) break
  }
  demo.stdout.resume()
  const elsewhere = temporaryDirectory()
  const [explain = '', init = ''] = printed.split('\n').filter((line) => / (explain|init)\b/.test(line))
  expect(printed.trimEnd().endsWith(init)).toBe(true)
  const shown = await run('sh', ['-c', explain.replace(' "$ID"', '')], { cwd: elsewhere })
  expect(shown.stdout).toBe('no requests yet\n')
  writeFileSync(join(elsewhere, 'password'), 'a secret of mine\n', { mode: 0o600 })
  const flags = '--url http://127.0.0.1:9 --password-file password --skip-checks'
  await run('sh', ['-c', `${init} ${flags}`], { cwd: elsewhere })
  expect(readdirSync(elsewhere)).toContain('postern.yaml')
})

test('the demo exits with 0 when it is stopped, and removes what it made', async () => {
  const demo = startDemo({ port: 0, adminPort: 0 })
  const printed = await demo.printed
  expect(readdirSync(temporary)).toHaveLength(1)
  demo.stop()
  expect(await demo.exit).toBe(0)
  expect(readdirSync(temporary)).toEqual([])
  await expect(fetch(printedValue(printed, 'Metrics'))).rejects.toThrow()
  await expect(fetch(printedValue(printed, 'Device itself'))).rejects.toThrow()
})

test('the folder of the demo is private, and its configuration is an ordinary one with a hashed password', async () => {
  const printed = await startDemo({ port: 0, adminPort: 0 }).printed
  const file = printedValue(printed, 'Configuration')
  const folder = join(file, '..')
  const modes = ['.', 'password', 'postern.yaml', 'state'].map(
    (name) => statSync(join(folder, name)).mode & 0o777,
  )
  expect(modes).toEqual([0o700, 0o600, 0o600, 0o700])
  const config = loadConfig({ file: readConfigFile(file), env: {}, sets: [] })
  expect(config.limits.api).toMatchObject({ requests: 60, window: 60_000, per: 'client' })
  expect(config.log.access, 'it would bury the printed commands').toBe(false)
  expect(config.password).toEqual({ file: join(folder, 'password') })
  expect(readFileSync(join(folder, 'password'), 'utf8')).toMatch(/^\$argon2id\$\S+\n$/)
})

test('the demo warns of nothing in its own configuration', async () => {
  const lines: string[] = []
  await startDemo({ port: 0, adminPort: 0 }, undefined, (line) => lines.push(line)).printed
  expect(lines.length).toBeGreaterThan(0)
  expect(lines.filter((line) => JSON.parse(line).level >= 40)).toEqual([])
})

test('the demo replaces a default port that is in use by a free one, and says so', async () => {
  const holder = createServer()
  // An error means that another process has the port, which is as good.
  await new Promise<void>((resolve) =>
    holder.once('error', () => resolve()).listen(8443, '127.0.0.1', resolve),
  )
  closeLater(() => void holder.close())
  const printed = await startDemo({ adminPort: 0 }).printed
  const port = new URL(printedValue(printed, 'API')).port
  expect(port).not.toBe('8443')
  expect(printed).toContain(`Port 8443 is taken on this machine; using ${port} instead.`)
})

test('the demo fails if a requested port is in use, and leaves nothing behind', async () => {
  const holder = createServer()
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve))
  closeLater(() => void holder.close())
  const bound = holder.address()
  const port = typeof bound === 'object' && bound ? bound.port : 0
  const demo = startDemo({ port, adminPort: 0 })
  expect(await demo.exit).toBe(1)
  expect(demo.errors()).toMatch(
    new RegExp(`^postern demo: listen.address: cannot listen on 127.0.0.1:${port}: .*in use.*\n$`),
  )
  expect(readdirSync(temporary)).toEqual([])
})

test('the demo runs the sample device alone, on the address of --device', async () => {
  const demo = startDemo({ device: '127.0.0.1:0' })
  const [, url = ''] = /^Sample device on (\S+),/.exec(await demo.printed) ?? []
  expect(await (await fetch(`${url}/api/system`)).json()).toMatchObject({ model: 'PowerDist 8' })
  expect((await fetch(`${url}/login`, { redirect: 'manual' })).headers.get('location')).toBe(
    `${url}/login.html`,
  )
  expect(readdirSync(temporary)).toEqual([])
  demo.stop()
  expect(await demo.exit).toBe(0)
  await expect(fetch(url)).rejects.toThrow()
})

test('a sample device alone has no ports of a sidecar, and says if its own is in use', async () => {
  const device = '127.0.0.1:0'
  const both = startDemo({ device, port: 8443 })
  expect([await both.exit, both.errors()]).toEqual([
    2,
    expect.stringContaining('postern demo: --device runs no'),
  ])
  const neither = startDemo({ device: '8080' })
  expect([await neither.exit, neither.errors()]).toEqual([
    2,
    expect.stringContaining('--device: must be host:port'),
  ])
  const first = await startDemo({ device }).printed
  const port = Number(/:(\d+),/.exec(first)?.[1])
  const second = startDemo({ device: `127.0.0.1:${port}` })
  expect([await second.exit, second.errors()]).toEqual([
    1,
    expect.stringMatching(/^postern demo: .*in use.*\n$/),
  ])
})

test('the demo ignores the environment variables of a real sidecar', async () => {
  vi.stubEnv('POSTERN_UPSTREAM_URL', 'http://192.0.2.1')
  const demo = startDemo({ port: 0, adminPort: 0 })
  expect(await demo.printed).toContain('Postern demo')
  expect(demo.errors()).toBe('')
})

test('a generated password uses all 32 letters and 75 random bits', () => {
  expect(generatePassword(() => Uint8Array.from({ length: 15 }, (_, i) => i))).toBe('01234-56789-abcde')
  expect(generatePassword(() => Uint8Array.from({ length: 15 }, (_, i) => 255 - i))).toBe('zyxwv-tsrqp-nmkjh')
  const many = new Set(Array.from({ length: 1000 }, () => generatePassword()))
  expect(many.size).toBe(1000)
})
