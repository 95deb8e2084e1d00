import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { writePapers } from '../deploy/build/papers.ts'
import { VERSION } from '../src/version.ts'
import { makeReleaseKey, SOURCE, signersIn, VENDOR } from './build/release-key.ts'
import { downloadAndTry, putBeforeDevice } from './pages/five-minutes.ts'
import { temporaryDirectory } from './support/certificate.ts'
import { closeLater } from './support/cleanup.ts'
import { replaceIn, shellBlock } from './support/pages.ts'
import { childrenOf, stateOf } from './support/processes.ts'
import { PASSWORD, startSidecar } from './support/sidecar.ts'
import { needs, run } from './support/tools.ts'

const root = join(import.meta.dirname, '..')

interface Session {
  /** Everything that the terminal showed. */
  readonly screen: string
  /** The history of the shell, if it keeps one. */
  readonly history: string
  /** The command lines of curl, as other users of the machine see them. */
  readonly commandLines: string
}

/** Pastes a block into a shell on a terminal, types `answer` at the password prompt, and exits the shell. */
async function paste(shell: string, block: string, answer: string): Promise<Session> {
  const folder = temporaryDirectory()
  const [history, commandLines] = [join(folder, 'history'), join(folder, 'command-lines')]
  for (const settings of ['.bashrc', '.zshrc']) {
    writeFileSync(join(folder, settings), `HISTFILE='${history}' HISTSIZE=100 SAVEHIST=100 PS1='ready> '\n`)
  }
  for (const file of [history, commandLines]) writeFileSync(file, '')
  const PATH = process.env.PATH ?? ''
  // Records its arguments and runs the real curl.
  const curl = `#!/bin/sh\nprintf '%s\\n' "$*" >> '${commandLines}'\nPATH='${PATH}' exec curl "$@"\n`
  writeFileSync(join(folder, 'curl'), curl, { mode: 0o755 })
  const env = {
    PATH: `${folder}${delimiter}${PATH}`,
    HOME: folder,
    PS1: 'ready> ',
    LC_ALL: 'C.UTF-8',
    TERM: 'dumb',
  }
  const child = spawn('script', ['-qec', `${shell} -i`, '/dev/null'], { env })
  closeLater(() => void child.kill())
  const dialogue: (readonly [cue: RegExp, input: string])[] = [
    [/ready> /, block],
    [/[^']Password: /, answer], // the prompt, not the echo of the block
    [/ready> /, 'stty -a\nexit\n'],
  ]
  let [screen, read] = ['', 0]
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text
    const [cue, input] = dialogue[0] ?? []
    const found = cue?.exec(screen.slice(read))
    if (found === null || found === undefined || input === undefined) return
    read += found.index + found[0].length
    dialogue.shift()
    // A shell misses an interrupt between its prompt and its `read`.
    const ready = input.endsWith(CTRL_C) ? waitsForInput(child.pid ?? 0) : Promise.resolve()
    void ready.then(() => child.stdin.write(input))
  })
  await once(child, 'exit')
  return { screen, history: readFileSync(history, 'utf8'), commandLines: readFileSync(commandLines, 'utf8') }
}

const CTRL_C = '\x03'

/** Resolves when the last process in the line of children below `pid` sleeps: the one with the terminal waits for input. */
async function waitsForInput(pid: number): Promise<void> {
  const last = (of: number): number => {
    const [child] = childrenOf(of)
    return child === undefined ? of : last(child)
  }
  while (stateOf(last(pid)) !== 'S') await delay(1)
}

const blocks = {
  'README.md': shellBlock('README.md', 'ACCESS_TOKEN='),
  'docs/installing.md': shellBlock('docs/installing.md', 'ACCESS_TOKEN='),
}
const pages = ['README.md', 'docs/installing.md'] as const
const shells = ['bash', 'zsh', 'dash', 'busybox ash']

it.each(pages.flatMap((page) => shells.map((shell) => ({ page, shell }))))(
  'the first request of $page, pasted into $shell, gets the response of the device and does not expose the password',
  async ({ page, shell }) => {
    for (const tool of ['script', 'curl', shell.split(' ')[0] ?? '']) needs(tool)
    const sidecar = await startSidecar({ transport: 'tls', config: { listen: { tls: 'auto' } } })
    const { requests } = sidecar.device
    const certificate = join(sidecar.directory, 'state/tls/cert.pem')
    const port = new URL(sidecar.url).port
    let block = replaceIn(blocks[page], 'https://localhost:8443', `https://localhost:${port}`)
    if (page === 'docs/installing.md') block = replaceIn(block, '/var/lib/postern/tls/cert.pem', certificate)

    const right = await paste(shell, block, `${PASSWORD}\n`)
    expect(right.screen).toContain('from the device')
    expect(requests.map(({ target }) => target)).toEqual(['/api/whatever'])
    expect(right.commandLines.match(/https:/g)).toHaveLength(2)
    for (const [place, text] of Object.entries(right)) expect(text, place).not.toContain(PASSWORD)
    if (shell === 'bash' || shell === 'zsh') expect(right.history).toContain('ACCESS_TOKEN=')

    const wrong = await paste(shell, block, 'wrong\n')
    expect(wrong.screen).toContain('{"error":"invalid_grant"')
    const brokenOff = await paste(shell, block, `hunt${CTRL_C}`)
    for (const { screen } of [right, wrong, brokenOff])
      expect(screen, 'the terminal shows input').toMatch(/ iexten echo /)
    expect(brokenOff.screen).not.toContain('hunt')
    expect(requests).toHaveLength(1)
  },
)

/** A program that runs the source, as the executable does. */
const POSTERN = `#!/bin/sh\nexec '${process.execPath}' '${join(root, 'src/main.ts')}' "$@"\n`

it('the first commands of README.md download a release, check it, and run the demo', async () => {
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

it('the commands of README.md put a sidecar in front of a device, and git ignores what they make', async () => {
  needs('git')
  const folder = temporaryDirectory()
  writeFileSync(join(folder, 'postern'), POSTERN, { mode: 0o755 })
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

it('CI types the commands for a checkout, as README.md prints them', () => {
  const commands = shellBlock('README.md', 'npm ci').match(/^npm[^#\n]*[^# \n]/gm)
  const fresh = readFileSync(join(root, '.ci/fresh'), 'utf8')
  expect(commands).toEqual(['npm ci && npm start', 'npm ci && npm test'])
  for (const command of commands ?? []) expect(fresh).toContain(`'${command}'`)
})

/** A stranger reads README.md before anything else is known, so what stands there is chosen. The rest belongs to the pages. */
const MOST_LINES = 160

it(`README.md has at most ${MOST_LINES} lines`, () => {
  const lines = readFileSync(join(root, 'README.md'), 'utf8').trimEnd().split('\n')
  expect(lines.length).toBeLessThanOrEqual(MOST_LINES)
})
