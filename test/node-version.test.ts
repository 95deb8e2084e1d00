import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { expect, it } from 'vitest'
import { installedBundle } from './build/shipped.ts'
import { temporaryDirectory } from './support/certificate.ts'
import { runningTest } from './support/running-test.ts'
import { run } from './support/tools.ts'

const root = join(import.meta.dirname, '..')
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const { engines, scripts, devDependencies } = JSON.parse(read('package.json'))
const needed = Number(/^>=(\d+)$/.exec(engines.node)?.[1])

/** The one line that an old Node.js must print. */
const refusal = (version: string): RegExp =>
  new RegExp(
    `^postern: Node\\.js ${needed} or later is needed, and this is ${version} .*nodejs\\.org/en/download.*\n$`,
  )

const bundle = join(installedBundle(), 'dist', 'postern.mjs')

it.each([
  [
    'package-lock.json',
    () => JSON.parse(read('package-lock.json')).packages[''].engines.node.slice('>='.length),
  ],
  ['the package "node"', () => devDependencies.node.split('.')[0]],
  ['the package "@types/node"', () => devDependencies['@types/node'].split('.')[0]],
  ['README.md', () => /npm brings Node\.js (\d+)/.exec(read('README.md'))?.[1]],
  [
    'the requirement in docs/installing.md',
    () => /a machine that has Node\.js (\d+) or later/.exec(read('docs/installing.md'))?.[1],
  ],
  [
    'the trouble in docs/operating.md',
    () => /a checkout need Node\.js (\d+), and/.exec(read('docs/operating.md'))?.[1],
  ],
])('%s names the Node.js of "engines"', (_what, named) => {
  expect(named()).toBe(String(needed))
})

it.each([
  ['src/main.ts', () => [join(root, 'src/main.ts'), '--version']],
  ['deploy/build/bundle.ts', (out: string) => [join(root, 'deploy/build/bundle.ts'), out]],
  ['the bundle', () => [bundle, '--version']],
] as const)(
  '%s exits with the required version if the version of Node.js is too old',
  async (_what, argsFor) => {
    const version = `${needed - 1}.9.9`
    const old = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`
    const out = join(temporaryDirectory(), 'out')
    const args = ['--import', `data:text/javascript,${encodeURIComponent(old)}`, ...argsFor(out)]
    const { code, stdout, stderr } = await run(process.execPath, args)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(refusal(version))
    expect(existsSync(out)).toBe(false)
  },
)

/** The first Node.js on the PATH that is not from npm; skips the test unless it is too old. */
function oldNode(): { readonly program: string; readonly version: string } {
  const places = (process.env.PATH ?? '').split(delimiter).filter((place) => !place.includes('node_modules'))
  const program = places.map((place) => join(place, 'node')).find(existsSync)
  const version =
    program === undefined
      ? ''
      : execFileSync(program, ['-p', 'process.versions.node'], { encoding: 'utf8' }).trim()
  if (program === undefined || !(Number.parseInt(version, 10) < needed)) {
    runningTest()?.skip(`no Node.js older than ${needed} is on the PATH`)
  }
  return { program: program ?? '', version }
}

it('the bundle, the command of the npm package and the scripts of package.json exit with the required version under the old Node.js of this machine', async () => {
  const { program, version } = oldNode()
  const commands = ['start', 'postern', 'bundle'].map((name) => String(scripts[name]).split(' '))
  const installed = ['node', 'src/postern.cjs', 'demo']
  for (const [node, ...args] of [['node', bundle, 'demo'], installed, ...commands]) {
    expect(node).toBe('node')
    const { code, stdout, stderr } = await run(program, args, { cwd: root })
    expect([args, code, stdout]).toEqual([args, 2, ''])
    expect(stderr).toMatch(refusal(version))
  }
})

it('a release says which Node.js npm needs, where npm has left out the native part of rolldown', async () => {
  const hook = `import { registerHooks } from 'node:module'
registerHooks({
  resolve(name, context, next) {
    if (name === 'rolldown') throw new Error('Cannot find native binding. Remove package-lock.json')
    return next(name, context)
  },
})`
  const out = join(temporaryDirectory(), 'out')
  const program = join(root, 'deploy/build/release.ts')
  const args = ['--import', `data:text/javascript,${encodeURIComponent(hook)}`, program, out]
  const { code, stderr } = await run(process.execPath, args)
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^release: rolldown cannot be loaded: .*20\.19.*\n$/),
  ])
})

it('that is the Node.js that rolldown needs, and docs/releasing.md says so', () => {
  const { packages } = JSON.parse(read('package-lock.json'))
  expect(packages['node_modules/rolldown'].engines.node).toMatch(/^\^20\.19\.0 \|\|/)
  expect(read('docs/releasing.md')).toContain('Node.js 20.19 or later')
})
