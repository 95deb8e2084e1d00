import {
  chmodSync,
  copyFileSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { writePapers } from '../deploy/build/papers.ts'
import { typedProgram } from '../src/commands/typed-program.ts'
import { VERSION } from '../src/version.ts'
import { makeReleaseKey, SOURCE, signersIn, VENDOR } from './build/release-key.ts'
import { downloadAndTry, IN_CLONE, putBeforeDevice } from './pages/five-minutes.ts'
import { temporaryDirectory } from './support/certificate.ts'
import { blocksOf, readPage, shellBlock } from './support/pages.ts'
import { PASSWORD, startSidecar } from './support/sidecar.ts'
import { runOnTerminal } from './support/terminal.ts'
import { needs, run } from './support/tools.ts'

const root = join(import.meta.dirname, '..')

/** A program that runs the source, as the executable does. */
const POSTERN = `#!/bin/sh\nexec '${process.execPath}' '${join(root, 'src/main.ts')}' "$@"\n`

it('the commands of docs/installing.md for one file download a release, check it, and run the demo', async () => {
  const release = temporaryDirectory()
  const file = gzipSync(POSTERN)
  const processor = process.arch === 'arm64' ? 'arm64' : 'x64'
  writeFileSync(join(release, `postern-linux-${processor}.gz`), file)
  writeFileSync(join(release, 'postern-1.0.0.tgz'), 'not downloaded')
  const key = await makeReleaseKey()
  const printed = await writePapers(release, { version: VERSION, source: SOURCE, vendor: VENDOR, key })
  const { temporary } = await downloadAndTry(release, signersIn(printed))
  expect(readdirSync(temporary)).toEqual([])
})

it('the commands of README.md put a sidecar in front of a device and use it, and git ignores what they make', async () => {
  for (const tool of ['git', 'npm']) needs(tool)
  const folder = temporaryDirectory()
  for (const part of ['package.json', 'src', 'node_modules'])
    symlinkSync(join(root, part), join(folder, part))
  // As a clone under umask 002.
  chmodSync(folder, 0o775)
  await putBeforeDevice(folder)
  expect(statSync(join(folder, 'password')).mode & 0o777).toBe(0o600)

  const made = [
    'password',
    'postern.yaml',
    'state/tls/cert.pem',
    'postern',
    'postern-linux-x64.gz',
    'SHA256SUMS',
    'SHA256SUMS.sig',
    'VERSION',
    'signers',
  ]
  const ours = ['deploy/postern.yaml', 'src/password/key-derivation.ts', 'src/compose/open-state.ts']
  const clone = temporaryDirectory()
  copyFileSync(join(root, '.gitignore'), join(clone, '.gitignore'))
  await run('git', ['init', '-q'], { cwd: clone })
  const ignored = await run('git', ['check-ignore', '--no-index', ...made, ...ours], { cwd: clone })
  expect(ignored.stdout.trim().split('\n')).toEqual(made)
})

it('the command of docs/installing.md for the first token asks for the password and shows the response', async () => {
  const sidecar = await startSidecar({ transport: 'tls', config: { listen: { tls: 'auto' } } })
  const folder = temporaryDirectory()
  writeFileSync(join(folder, 'postern'), POSTERN, { mode: 0o755 })
  const configFile = join(folder, 'postern.yaml')
  const listen = { address: new URL(sidecar.url).host, tls: 'auto' }
  const config = { listen, upstream: { url: sidecar.device.url }, password: { file: '/dev/null' } }
  writeFileSync(configFile, JSON.stringify({ ...config, state_dir: join(sidecar.directory, 'state') }))
  const { screen } = await runOnTerminal(
    ['sh', '-c', shellBlock('docs/installing.md', 'postern try')],
    { env: { PATH: `${folder}${delimiter}${process.env.PATH}`, POSTERN_CONFIG: configFile } },
    ['Password: ', `${PASSWORD}\r`],
  )
  expect(screen).toContain('\n\nfrom the device\n')
  expect(screen).not.toContain(PASSWORD)
  expect(sidecar.device.requests.map(({ target }) => target)).toEqual(['/api/whatever'])
})

it('CI types the commands for a checkout, as README.md prints them', () => {
  const commands = shellBlock('README.md', 'npm test').match(/^npm[^#\n]*[^# \n]/gm)
  const fresh = readFileSync(join(root, '.ci/fresh'), 'utf8')
  expect(commands).toEqual(['npm ci && npm start', 'npm ci && npm test'])
  for (const command of commands ?? []) expect(fresh).toContain(`'${command}'`)
})

it('README.md spells the program in one way, as the commands that it prints do', () => {
  expect(typedProgram({ argv0: 'node', script: '/postern/src/main.ts', env: {} })).toBe(IN_CLONE)
  const commands = blocksOf('README.md', 'sh')
    .join('')
    .match(/^.*postern.*$/gm)
  expect(commands?.length).toBeGreaterThan(3)
  for (const command of commands ?? []) expect(command).toMatch(new RegExp(`^${IN_CLONE} [a-z]+(?: |$)`))
})

// A stranger reads README.md before anything else is known, so what stands there is chosen. The rest belongs to the pages.
const page = readPage('README.md')
const lines = page.trimEnd().split('\n')

it('README.md has at most 130 lines', () => {
  expect(lines.length).toBeLessThanOrEqual(130)
})

it('README.md leads to the first token within 250 words', () => {
  const [before = ''] = /^[\s\S]*?postern -- try .*\n/.exec(page) ?? []
  const words = before.match(/\S+/g) ?? []
  expect(words.length).toBeGreaterThan(100)
  expect(words.length).toBeLessThanOrEqual(250)
})

it('README.md says first what it is for and what not, and nothing of releases in its first half', () => {
  const [first = '', second = ''] = [lines.slice(0, lines.length / 2), lines.slice(lines.length / 2)].map(
    (half) => half.join('\n'),
  )
  expect(first).toMatch(
    /\*\*It is for you\*\*.*\n(?:- .*\n){3}\n\*\*It is not for you\*\*.*\n(?:- .*\n){3}\n/,
  )
  const OF_RELEASES = /\b(?:vendors?|keys?|signatures?|signed)\b/i
  expect(first).not.toMatch(OF_RELEASES)
  expect(second).toMatch(OF_RELEASES)
})
