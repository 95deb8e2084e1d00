import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { clientOf, readLog } from './process/serve.ts'
import { temporaryDirectory } from './support/certificate.ts'
import { closeLater } from './support/cleanup.ts'
import { startDevice } from './support/device.ts'
import { PASSWORD, startSidecar } from './support/sidecar.ts'
import { needs, run } from './support/tools.ts'

const root = join(import.meta.dirname, '..')

/** The shell block of a page that contains these words. */
function blockOf(page: string, words: string): string {
  const text = readFileSync(join(root, page), 'utf8')
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
  const found = blocks.filter((block) => block.includes(words))
  if (found.length !== 1) throw new Error(`${found.length} blocks of ${page} have "${words}"`)
  return found[0] ?? ''
}

/** Replaces a text that the block must contain. */
function replace(block: string, text: string, by: string): string {
  if (!block.includes(text)) throw new Error(`no "${text}" in ${block}`)
  return block.replaceAll(text, by)
}

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
  let interrupting: NodeJS.Timeout | undefined
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text
    const [cue, input] = dialogue[0] ?? []
    const found = cue?.exec(screen.slice(read))
    if (found === null || found === undefined || input === undefined) return
    read += found.index + found[0].length
    dialogue.shift()
    clearInterval(interrupting)
    child.stdin.write(input)
    // A shell misses an interrupt between its prompt and its `read`. Nothing shows when it reads, so Ctrl-C is pressed again.
    if (input.endsWith(CTRL_C)) interrupting = setInterval(() => child.stdin.write(CTRL_C), 200)
  })
  await once(child, 'exit')
  return { screen, history: readFileSync(history, 'utf8'), commandLines: readFileSync(commandLines, 'utf8') }
}

const CTRL_C = '\x03'

const pages = ['README.md', 'docs/installing.md']
const shells = ['bash', 'zsh', 'dash', 'busybox ash']

it.each(pages.flatMap((page) => shells.map((shell) => ({ page, shell }))))(
  'the first request of $page, pasted into $shell, gets the response of the device and does not expose the password',
  async ({ page, shell }) => {
    for (const tool of ['script', 'curl', shell.split(' ')[0] ?? '']) needs(tool)
    const sidecar = await startSidecar({ transport: 'tls', config: { listen: { tls: 'auto' } } })
    const { requests } = sidecar.device
    const certificate = join(sidecar.directory, 'state/tls/cert.pem')
    let block = blockOf(page, 'ACCESS_TOKEN=')
    block = replace(block, 'https://localhost:8443', `https://localhost:${new URL(sidecar.url).port}`)
    if (page === 'docs/installing.md') block = replace(block, '/var/lib/postern/tls/cert.pem', certificate)

    const right = await paste(shell, block, `${PASSWORD}\n`)
    expect(right.screen).toContain('from the device')
    expect(requests.map(({ target }) => target)).toEqual(['/api/whatever'])
    expect(right.commandLines.match(/https:/g)).toHaveLength(2)
    for (const [place, text] of Object.entries(right)) expect(text, place).not.toContain(PASSWORD)
    if (shell === 'bash' || shell === 'zsh') expect(right.history).toContain('ACCESS_TOKEN=')

    const wrong = await paste(shell, block, 'wrong\n')
    expect(wrong.screen).toMatch(/curl: .* 400/)
    const brokenOff = await paste(shell, block, `hunt${CTRL_C}`)
    for (const { screen } of [right, wrong, brokenOff])
      expect(screen, 'the terminal shows input').toMatch(/ iexten echo /)
    expect(brokenOff.screen).not.toContain('hunt')
    expect(requests).toHaveLength(1)
  },
)

it('the commands of README.md put a sidecar in front of a device, and git ignores what they make', async () => {
  for (const tool of ['bash', 'npm', 'git']) needs(tool)
  const device = await startDevice()
  const folder = temporaryDirectory()
  for (const name of ['package.json', 'src', 'node_modules'])
    symlinkSync(join(root, name), join(folder, name))
  writeFileSync(join(folder, 'typed'), `${PASSWORD}\n`)
  const block = replace(blockOf('README.md', 'hash-password'), 'http://192.0.2.7', device.url)
  const child = spawn('bash', ['-c', `exec < typed\n${block}`], {
    cwd: folder,
    detached: true, // so that the process group can be ended with everything that npm starts
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      POSTERN_LISTEN_ADDRESS: '127.0.0.1:0',
      POSTERN_ADMIN_ADDRESS: '127.0.0.1:0',
    },
  })
  const exited = once(child, 'exit')
  closeLater(async () => {
    process.kill(-(child.pid ?? 0), 'SIGTERM')
    await exited
  })
  const { waitForLog, lines } = readLog(child, text(child.stderr))
  const { public: url, admin } = await waitForLog('listening')
  const verdicts = lines.flatMap((line) => /^(?:ok|FAILED)(?= )/.exec(line)?.[0] ?? [])
  expect(new Set(verdicts)).toEqual(new Set(['ok']))
  const { login, use } = clientOf(String(url), String(admin), 'tls', join(folder, 'state'))
  expect(await use(String((await login()).json().access_token))).toBe(200)
  expect(readFileSync(join(folder, 'password'), 'utf8')).toMatch(/^\$argon2id\$\S+\n$/)
  expect(statSync(join(folder, 'password')).mode & 0o777).toBe(0o600)

  const made = ['password', 'postern.yaml', 'state/tls/cert.pem']
  const ours = ['deploy/postern.yaml', 'src/password/key-derivation.ts', 'src/compose/state.ts']
  const clone = temporaryDirectory()
  copyFileSync(join(root, '.gitignore'), join(clone, '.gitignore'))
  await run('git', ['init', '-q'], { cwd: clone })
  const ignored = await run('git', ['check-ignore', '--no-index', ...made, ...ours], { cwd: clone })
  expect(ignored.stdout.trim().split('\n')).toEqual(made)
}, 60_000)
