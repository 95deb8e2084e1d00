import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, openSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it, vi } from 'vitest'
import { hashPassword } from '../../src/password/key-derivation.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { PASSWORD } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { runInProcess } from './in-process.ts'
import { ENV, MAIN, prepareSite } from './serve.ts'

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a line of bash, in which `postern` is the program. The exit code is that of its first command. */
async function bash(line: string, { args = [] as readonly string[], temporary = '' } = {}): Promise<Ended> {
  const prepared = `postern() { '${process.execPath}' '${MAIN}' "$@"; }\n${line}\nexit \${PIPESTATUS[0]}`
  const env = { ...ENV, ...(temporary === '' ? {} : { TMPDIR: temporary }) }
  const child = spawn('bash', ['--norc', '-c', prepared, 'bash', ...args], { env })
  closeLater(() => void child.kill('SIGKILL'))
  // The one line that a command may ask for.
  child.stdin.on('error', () => {}).end(PASSWORD)
  const [[code], stdout, stderr] = await Promise.all([
    once(child, 'exit'),
    text(child.stdout),
    text(child.stderr),
  ])
  return { code, stdout, stderr }
}

/** The command lines of every command that prints, beside a sidecar. Each of them succeeds. */
async function commandLines(): Promise<readonly (readonly [name: string, ...args: string[]])[]> {
  const site = await prepareSite({ password: await hashPassword(PASSWORD) })
  const sidecar = await site.serveHere()
  await sidecar.grant()
  const configured = ['--config', site.configFile]
  const { host } = new URL(sidecar.adminUrl)
  const folder = temporaryDirectory()
  const [password, log] = [join(folder, 'password'), join(folder, 'log')]
  writeFileSync(password, PASSWORD, { mode: 0o600 })
  writeFileSync(
    log,
    '{"time":"2026-11-26T10:00:00Z","grant":"0","method":"GET","path":"/a","status":200,"msg":"request"}\n',
  )
  const written = ['--config', join(folder, 'postern.yaml')]
  return [
    ['--help'],
    ['--version'],
    ['verify', '--help'],
    ['check', ...configured],
    ['check', '--json', ...configured],
    ['healthy', ...configured, '--set', `admin.address=${host}`],
    ['status', ...configured],
    ['status', '--json', ...configured],
    ['explain', ...configured],
    ['revoke', '--all', ...configured],
    ['verify', sidecar.url, '--password-file', password, '--dry-run'],
    ['verify', sidecar.url, '--password-file', password, '--only', 'C11', '--quick'],
    ['propose', log],
    ['hash-password'],
    ['init', '--url', site.device.url, '--password-file', password, '--skip-checks', ...written],
    // Not the default ports: the demo of another test may have to do with them.
    ['demo', '--port', '0', '--admin-port', '0'],
    ['demo', '--device', '127.0.0.1:0'],
  ]
}

/** Of these the program itself is run: help, a command that ends, and one that runs on. */
const ALONE: readonly (readonly string[])[] = [
  ['--help'],
  ['hash-password'],
  ['demo', '--port', '0', '--admin-port', '0'],
]

const failure = (code: string, message: string): Error => Object.assign(new Error(message), { code })

/** Runs every command whose output is lost so, and then the program itself in a line of bash; `judge` gets how they end. */
async function loseOutput(
  lost: Error,
  line: string,
  judge: (ended: Pick<Ended, 'code' | 'stderr'>, args: readonly string[]) => void,
): Promise<void> {
  vi.stubEnv('TMPDIR', temporaryDirectory())
  for (const args of await commandLines()) judge(await runInProcess(args, { lost, stdin: PASSWORD }), args)
  // What the demo made is gone.
  expect(readdirSync(process.env.TMPDIR ?? '').filter((name) => name.startsWith('postern-demo'))).toEqual([])
  vi.unstubAllEnvs()
  needs('bash')
  for (const args of ALONE) {
    const temporary = temporaryDirectory()
    judge(await bash(line, { args, temporary }), args)
    expect(readdirSync(temporary)).toEqual([])
  }
}

describe('every command', () => {
  it('H121 whose reader has left ends with 141, as by SIGPIPE, and says nothing', async () => {
    // `false` never reads, and has ended when the command begins to write.
    await loseOutput(failure('EPIPE', 'write EPIPE'), 'postern "$@" | false', ({ code, stderr }, args) => {
      expect([args, code, stderr]).toEqual([args, 141, expect.not.stringMatching(/EPIPE|Error|postern/)])
    })
  })

  it('H121 whose output meets a full disk says so, and ends with 1', async () => {
    const full = failure('ENOSPC', 'ENOSPC: no space left on device, write')
    await loseOutput(full, 'postern "$@" > /dev/full', ({ code, stderr }, args) => {
      expect([args, code, stderr]).toEqual([
        args,
        1,
        expect.stringMatching(/^postern[\w -]*: cannot write the output: ENOSPC: no space left on device/m),
      ])
      expect(stderr.match(/cannot write/g), args.join(' ')).toHaveLength(1)
      expect(stderr).not.toContain('    at ')
    })
  })
})

/** A folder whose control socket answers as a sidecar with many grants does. */
async function stateOfThousands(): Promise<string> {
  const stateDir = join(temporaryDirectory(), 'state')
  mkdirSync(stateDir)
  const grants = Array.from({ length: 3_000 }, (_, i) => ({
    id: `grant-${String(i).padStart(40, '0')}`,
    client: '192.0.2.7',
    issuedAt: 1_700_000_000_000,
    expiresAt: 1_700_000_600_000,
    usedAt: 1_700_000_000_000,
    accessTokens: 1,
    refreshTokens: 1,
  }))
  const server = createServer((_, response) =>
    response.end(JSON.stringify({ listening: [], tokens: { access: 3_000, refresh: 3_000 }, grants })),
  )
  server.listen(join(stateDir, 'control.sock'))
  await once(server, 'listening')
  closeLater(() => void server.close())
  return stateDir
}

const statusOf = (stateDir: string, ...flags: readonly string[]): readonly string[] => [
  'status',
  ...flags,
  ...['--set', `state_dir=${stateDir}`],
  ...['--set', 'upstream.url=http://127.0.0.1:9'],
  ...['--set', 'password.file=none'],
]

describe('the grants of 3,000 logins', () => {
  it.each([['--json'], []])('H121 arrive whole in a pipe (%j)', async (...flags) => {
    needs('bash')
    const args = statusOf(await stateOfThousands(), ...flags)
    const { code, stdout } = await bash('postern "$@" | cat', { args })
    expect([code, stdout.match(/grant-\d{40}/g)?.length]).toEqual([0, 3_000])
  })

  it('H121 arrive whole in a pipe that does not wait, as another program can leave it', async () => {
    needs('bash')
    const args = statusOf(await stateOfThousands(), '--json')
    const nonBlocking = `${process.execPath} -e 'process.stdout.write("")'`
    const { code, stdout } = await bash(`{ ${nonBlocking}; postern "$@"; } | cat`, { args })
    expect([code, stdout.match(/grant-\d{40}/g)?.length]).toEqual([0, 3_000])
  })

  it('H121 of which only a part fits on the disk are no success', async () => {
    needs('prlimit')
    const file = join(temporaryDirectory(), 'status')
    const out = openSync(file, 'w')
    const args = ['--fsize=65536', process.execPath, MAIN, ...statusOf(await stateOfThousands(), '--json')]
    const child = spawn('prlimit', args, { env: ENV, stdio: ['ignore', out, 'pipe'] })
    const [[code], stderr] = await Promise.all([
      once(child, 'exit'),
      text(child.stderr ?? expect.unreachable()),
    ])
    expect([code, stderr]).toEqual([
      1,
      'postern status: cannot write the output: EFBIG: file too large, write\n',
    ])
    expect(statSync(file).size).toBe(65_536)
    expect(readFileSync(file, 'utf8')).toMatch(/^\{"listening"/)
  })
})
