import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { verifyCommand } from '../../src/commands/verify.ts'
import { DOCUMENTED_LIMITS } from '../../src/verify/options.ts'
import { planOf, verify } from '../../src/verify/run.ts'
import type { Plan, Report } from '../../src/verify/verdict.ts'
import { ENV, MAIN } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { PASSWORD, type SidecarOptions, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { type MovedTime, movedTime, runOptions, runVerify, WITHOUT_FLOODS } from './a-run.ts'

const startServer = ({ config = {}, ...options }: SidecarOptions = {}): Promise<TestSidecar> =>
  startSidecar({
    documentedLimits: true,
    ...options,
    config: { oauth: { revocation_path: '/oauth/revoke' }, ...config },
  })

function writePassword(): string {
  const file = join(temporaryDirectory(), 'password')
  writeFileSync(file, PASSWORD, { mode: 0o600 })
  return file
}

/** Runs `postern verify --json`. */
async function runCommand(
  url: string,
  flags: object,
  time: MovedTime,
): Promise<{ document: unknown; shown: string }> {
  let [out, shown] = ['', '']
  const io = {
    stdout: { write: (written: string) => (out += written) },
    stderr: { write: (written: string) => (shown += written) },
    env: {},
    onStop: () => {},
    onLostOutput: () => {},
  }
  const checks: Parameters<typeof verifyCommand>[3] = {
    planOf,
    verify: (options, reporter, _time, signal) => verify(options, reporter, time, signal),
  }
  await verifyCommand(url, { passwordFile: writePassword(), json: true, ...flags }, io, checks)
  return { document: JSON.parse(out), shown }
}

interface Requested {
  readonly method: string
  readonly path: string
}

/** The requests that a sidecar has received, from its access log. */
function requestsOf(sidecar: TestSidecar): readonly Requested[] {
  return sidecar
    .logLines()
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === 'request')
}

/** Together these send what a whole run sends; apart, the requests of the floods cannot hide the others. */
const RUNS: Readonly<Record<string, { readonly options?: SidecarOptions; readonly flags: object }>> = {
  'a quick run': { options: { transport: 'tls' }, flags: { quick: true, insecure: true } },
  'a run that meets used-up windows': {
    options: { config: { limits: { api: { requests: 20 }, oauth: { requests: 15 } } } },
    flags: { quick: true, apiLimit: '20/60', oauthLimit: '15/60' },
  },
  'a run without floods': { flags: { only: WITHOUT_FLOODS.join(',') } },
  'a run for the floods': { flags: { only: 'H125' } },
}

/** Announces a run, runs it, and reads what the sidecar and its device know of it. */
async function observe({ options, flags }: (typeof RUNS)[string]) {
  const time = movedTime()
  const sidecar = await startServer({ ...options, clock: time })
  const all = { path: '/status?verbose=1', ...flags }
  // The command writes the documents.
  const dryRun = await runCommand(sidecar.url, { ...all, dryRun: true }, time)
  const { plan } = dryRun.document as { plan: Plan }
  const before = requestsOf(sidecar)
  const { document, shown } = await runCommand(sidecar.url, all, time)
  const atDevice = sidecar.device.requests.map(({ method, target }) => `${method} ${target}`)
  const metrics = {
    logins: await sidecar.metric('postern_tokens_issued_total', { grant: 'password' }),
    wrongPasswords: await sidecar.metric('postern_password_failures_total'),
    tokens: await sidecar.metric('postern_tokens'),
  }
  return { plan, before, report: document as Report, shown, sent: requestsOf(sidecar), atDevice, metrics }
}

const observed = new Map<string, ReturnType<typeof observe>>()

/** Each of the runs is made once for all tests. */
function run(name: string): ReturnType<typeof observe> {
  return observed.getOrInsertComputed(name, () => observe(RUNS[name] ?? expect.unreachable()))
}

it('H126 Ctrl-C ends a run after its tokens are revoked', async () => {
  const sidecar = await startServer()
  const args = ['verify', sidecar.url, '--password-file', writePassword()]
  const child = spawn(process.execPath, [MAIN, ...args], { env: ENV, stdio: ['ignore', 'pipe', 'pipe'] })
  const stderr = text(child.stderr)
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (written: string) => {
    if (!stdout.includes('\nkept ') && (stdout + written).includes('\nkept ')) child.kill('SIGINT')
    stdout += written
  })
  const [code] = await once(child, 'close')
  expect([code, await stderr]).toEqual([
    1,
    expect.stringMatching(
      /\npostern verify: stopping; .*\npostern verify: the run was stopped before its end.*\n$/,
    ),
  ])
  expect(stdout).not.toContain('RESULT')
  expect(await sidecar.metric('postern_tokens_issued_total')).toBeGreaterThan(0)
  expect(await sidecar.metric('postern_tokens')).toBe(0)
})

it('H126 a run that is broken off rejects with the reason', async () => {
  const sidecar = await startServer()
  const stop = new AbortController()
  const running = runVerify(runOptions(sidecar.url, PASSWORD), undefined, stop.signal)
  await expect.poll(() => sidecar.metric('postern_tokens')).toBeGreaterThan(0)
  stop.abort(new Error('stopped'))
  await expect(running).rejects.toThrow('stopped')
})

it.each(Object.keys(RUNS))('H126 %s keeps to what it announces, and leaves no login behind', async (name) => {
  const { plan, before, report, metrics } = await run(name)
  expect(before).toEqual([])
  expect(report.promises.filter(({ result }) => result === 'broken')).toEqual([])
  const floods = report.floods.reduce((sum, { passed, refusals }) => sum + passed + refusals.responses, 0)
  if (floods === 0) expect(report.requests).toBeLessThanOrEqual(plan.requests)
  expect(metrics.logins).toBeLessThanOrEqual(plan.logins)
  expect(metrics.wrongPasswords).toBeLessThanOrEqual(plan.wrongPasswords)
  expect(metrics.tokens).toBe(0)
})

it.each(Object.keys(RUNS))(
  'H126 %s sends the API only GET, HEAD and OPTIONS, and the device nothing but GET for its path',
  async (name) => {
    const { report, sent, atDevice } = await run(name)
    // Bytes that are no request, such as two Host fields, have no line.
    expect(sent.length).toBeLessThanOrEqual(report.requests)
    expect(sent.length).toBeGreaterThan(20)
    const others = sent.filter(({ method }) => !['GET', 'HEAD', 'OPTIONS'].includes(method))
    for (const { method, path } of new Set(others)) {
      expect(`${method} ${decodeURIComponent(path).toLowerCase()}`).toMatch(
        /^POST \/+(?:oauth\/\.\/|x\/\.\.\/)?oauth\//,
      )
    }
    expect(atDevice.length).toBeGreaterThan(3)
    const usual = /^GET \/{1,2}status\?verbose=1(?:&postern-verify)?$/
    expect(atDevice.filter((each) => !usual.test(each))).toEqual([])
  },
)

it('H126 what it announces has room for a window that ends while a connection uses it up', () => {
  const announced = (requests: number): number => {
    const limits = { ...DOCUMENTED_LIMITS, api: { requests, window: 60 } }
    return planOf(runOptions('http://127.0.0.1', PASSWORD, { limits, only: ['C13'] })).requests
  }
  expect(announced(160) - announced(60)).toBe(2 * 100)
})

it('H126 a quick run waits for no window', async () => {
  const { report, shown } = await run('a quick run')
  expect(shown).not.toMatch(/^\.\.\./m)
  const untestable = report.promises.filter(({ result }) => result === 'not testable')
  expect(untestable.map(({ id }) => id)).toEqual(['C8', 'C14', 'H125'])
})

it('H126 a run takes about as long as it announces, and has no flood if it announces none', async () => {
  const { plan, report } = await run('a run without floods')
  expect([plan.floods, report.floods]).toEqual([null, []])
  expect(report.seconds).toBeLessThanOrEqual(1.5 * plan.seconds)
})

it('H126 a crowd waits for no window where the request before it has just opened one', async () => {
  const time = movedTime()
  const sidecar = await startServer({ clock: time })
  sidecar.device.handle(async (_request, response) => {
    await time.advance(20)
    response.end()
  })
  const { shown } = await runCommand(sidecar.url, { only: 'C14' }, time)
  expect(shown).toContain('passed over 20 connections')
  expect(shown).not.toContain('waits for a new window (over')
})
