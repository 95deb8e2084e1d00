import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, delimiter, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeAll, describe, expect, it } from 'vitest'
import { startLocalRegistry } from './build/local-registry.ts'
import { clientOf, prepareSite, readLog } from './process/serve.ts'
import { temporaryDirectory } from './support/certificate.ts'
import { closeLater } from './support/cleanup.ts'
import { startDevice } from './support/device.ts'
import { blocksOf, replaceIn, shellBlock } from './support/pages.ts'
import { PASSWORD } from './support/sidecar.ts'
import { runOnTerminal } from './support/terminal.ts'
import { isInstalled, needs, type Run, run } from './support/tools.ts'

const root = join(import.meta.dirname, '..')

/** The environment of a user who installs Postern: the Node.js of this test, and no settings of npm but to ask no other server. */
const env = (home: string): NodeJS.ProcessEnv => ({
  PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
  HOME: home,
  npm_config_audit: 'false',
  npm_config_fund: 'false',
  npm_config_update_notifier: 'false',
})

const CTRL_C = '\x03'

/** The strictest reading of the types, those of the libraries included. */
const STRICT = {
  strict: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: false,
  target: 'es2022',
  module: 'nodenext',
  types: ['node'],
  typeRoots: [join(root, 'node_modules', '@types')],
}

/** Calls that must not compile. */
const REFUSED = `
import { createSidecar, type Sidecar } from 'postern'
const password = { file: './password' }
// @ts-expect-error: no address of the device
await createSidecar({ config: { upstream: {}, password } })
// @ts-expect-error: no value of a YAML file
await createSidecar({ config: { upstream: { url: 'http://192.0.2.7' }, password, realm: () => 'device' } })
// @ts-expect-error: no configuration
await createSidecar({})
export const stop = (sidecar: Sidecar): Promise<void> => sidecar.stop(5_000)
`

interface Installed {
  readonly registry: string
  readonly tarball: string
  /** A project whose only dependency is the package. */
  readonly project: string
  readonly install: Run
}

/** Packs the checkout, and installs the result in an empty project, by the command of docs/library.md. */
async function install(): Promise<Installed> {
  const home = temporaryDirectory()
  const project = join(home, 'project')
  mkdirSync(project)
  const pack = await run('npm', ['pack', '--pack-destination', project], { cwd: root, env: env(home) })
  if (pack.code !== 0) throw new Error(pack.stderr)
  const tarball = join(project, String(readdirSync(project).find((name) => name.endsWith('.tgz'))))
  writeFileSync(join(project, 'package.json'), '{ "name": "gateway", "type": "module" }\n')
  const registry = await startLocalRegistry()
  const command = shellBlock('docs/library.md', 'npm install')
  const user = { ...env(home), npm_config_registry: registry }
  return {
    registry,
    tarball,
    project,
    install: await run('sh', ['-c', command], { cwd: project, env: user }),
  }
}

let installed: Installed | undefined

beforeAll(async () => {
  if (isInstalled('npm') && isInstalled('tar')) installed = await install()
})

function installedPackage(): Installed {
  needs('npm')
  needs('tar')
  return installed ?? expect.fail('beforeAll installs the package')
}

const postern = (): string => join(installedPackage().project, 'node_modules', '.bin', 'postern')

describe('H117 the npm package', () => {
  it('is installed in a project by the command of docs/library.md, without a warning', () => {
    const { install, project, tarball } = installedPackage()
    expect([install.code, install.stderr]).toEqual([0, ''])
    expect(install.stdout).toMatch(/^\s*added \d+ packages in \S+\s*$/)
    expect(JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')).dependencies).toEqual({
      postern: `file:${basename(tarball)}`,
    })
  })

  it('holds the program, its types and the pages about it, and neither source nor tests', async () => {
    const { tarball, project } = installedPackage()
    expect(basename(tarball)).toMatch(/^postern-\d+\.\d+\.\d+\.tgz$/)
    const folder = join(project, 'node_modules', 'postern')
    const files = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((each) => each.isFile())
      .map((each) => join(each.parentPath, each.name).slice(folder.length + 1))
    const program = files.filter((file) => /^lib\/.*\.c?js$/.test(file))
    expect(program.length).toBeGreaterThan(100)
    expect(files.filter((file) => !program.includes(file)).sort()).toEqual([
      'LICENSE',
      'README.md',
      'deploy/configuration.md',
      'deploy/old-firmware.md',
      'deploy/postern.schema.json',
      'deploy/postern.yaml',
      'docs/alerts.md',
      'docs/allow.md',
      'docs/api.md',
      'docs/beside.md',
      'docs/browsers.md',
      'docs/clients.md',
      'docs/conformity.md',
      'docs/data.md',
      'docs/hardening.md',
      'docs/installing.md',
      'docs/issuing.md',
      'docs/library.md',
      'docs/many-devices.md',
      'docs/measure.md',
      'docs/operating.md',
      'docs/sharing.md',
      'docs/sizing.md',
      'docs/verifying.md',
      'docs/watching.md',
      'lib/api.d.ts',
      'lib/config/yaml.d.ts',
      'lib/page/icon.svg',
      'lib/page/index.html',
      'lib/page/panels.css',
      'lib/page/style.css',
      'lib/page/tables.css',
      'lib/password/hook.d.ts',
      'lib/system/setup-error.d.ts',
      'package.json',
    ])
  })

  it('has the command postern', async () => {
    const { project } = installedPackage()
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const npx = await run('npx', ['--no-install', 'postern', '--version'], {
      cwd: project,
      env: env(project),
    })
    expect(npx).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
  })

  it('is installed for all users, runs the demo and is removed again by the commands of docs/installing.md', async () => {
    needs('bash')
    const { registry, tarball, project } = installedPackage()
    const prefix = temporaryDirectory()
    const block = shellBlock('docs/installing.md', 'npm install -g')
    const user = env(dirname(project))
    const settings = { npm_config_prefix: prefix, npm_config_registry: registry }
    const { screen } = await runOnTerminal(
      ['bash', '-c', `set -e\n${block}`],
      {
        cwd: dirname(tarball),
        env: { ...user, ...settings, PATH: [join(prefix, 'bin'), user.PATH].join(delimiter) },
      },
      ['Ctrl-C stops', CTRL_C],
    )
    expect(screen).toMatch(/added \d+ packages.*Ctrl-C stops.*stopped.*removed \d+ packages/s)
    expect([readdirSync(join(prefix, 'bin')), readdirSync(join(prefix, 'lib', 'node_modules'))]).toEqual([
      [],
      [],
    ])
  })

  it('serves and checks: tokens for a password hashed by bcrypt, which a thread verifies', async () => {
    const site = await prepareSite({
      password: '$2b$04$nP0pofo1gh4MRHGmQJctHeBFQD.h3It3VxJlhU.F8b0xx7l/nSxaS',
      command: () => [process.execPath, postern()],
    })
    const check = await run(process.execPath, [postern(), 'check', '--config', site.configFile], { env: {} })
    expect([check.code, check.stderr]).toEqual([0, ''])
    const sidecar = await site.serve()
    expect((await sidecar.login('wrong')).status).toBe(400)
    const { access_token: token } = await sidecar.grant('correctbatteryhorsestapler')
    expect(await sidecar.use(token)).toBe(200)
    expect(await sidecar.stop()).toEqual({ code: 0, signal: null })
    expect(await sidecar.stderr).toBe('')
  })

  it('embeds a sidecar in a program in TypeScript: the example of docs/library.md, compiled strictly', async () => {
    const { project } = installedPackage()
    const device = await startDevice()
    const [example = ''] = blocksOf('docs/library.md', 'ts')
    const here = replaceIn(replaceIn(example, 'http://192.0.2.7', device.url), ':8443', ':0')
    writeFileSync(join(project, 'gateway.ts'), here)
    writeFileSync(join(project, 'refused.ts'), REFUSED)
    writeFileSync(join(project, 'password'), `${PASSWORD}\n`, { mode: 0o600 })
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions: STRICT }))
    const tsc = await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc')], { cwd: project })
    expect(tsc).toEqual({ code: 0, stdout: '', stderr: '' })

    const child = spawn(process.execPath, ['gateway.js'], { cwd: project, env: {} })
    closeLater(() => void child.kill('SIGKILL'))
    const [stderr, ended] = [text(child.stderr), once(child, 'close')]
    const { lines, waitForLog } = readLog(child, stderr)
    const { public: url } = await waitForLog('listening')
    const sidecar = clientOf(String(url), '', 'tls', join(project, 'state'))
    const { access_token: token } = await sidecar.grant()
    expect(await sidecar.use(token)).toBe(200)
    child.kill('SIGTERM')
    expect([await ended, await stderr]).toEqual([[0, null], ''])
    expect(lines).toContain(`listening on ${url}`)
    expect(lines.at(-1)).toContain('"msg":"stopped"')
  })

  it('tells an old Node.js in one line that it is too old', async () => {
    const old = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '12.22.9' } })`
    const args = ['--import', `data:text/javascript,${encodeURIComponent(old)}`, postern(), '--version']
    const { code, stdout, stderr } = await run(process.execPath, args)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/^postern: Node\.js 26 or later is needed, and this is 12\.22\.9 .*\n$/)
  })
})
