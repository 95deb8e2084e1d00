import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { verifyCommand } from '../../src/commands/verify.ts'
import { OUTSIDE } from '../../src/promises/promises.ts'
import { floods } from '../../src/verify/rounds/floods.ts'
import type { Plan, Report } from '../../src/verify/verdict.ts'
import { ENV, MAIN } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'

/** Short windows, so that a run takes seconds. */
const LIMITS = { api: { requests: 20, window: '4s' }, oauth: { requests: 15, window: '4s' } }
const FLAGS = { apiLimit: '20/4', oauthLimit: '15/4', flood: '1', connections: '4' }

const startServer = (): Promise<TestSidecar> =>
  startSidecar({ config: { oauth: { revocation_path: '/oauth/revoke' }, limits: LIMITS } })

function writePassword(): string {
  const file = join(temporaryDirectory(), 'password')
  writeFileSync(file, PASSWORD, { mode: 0o600 })
  return file
}

/** Runs `postern verify --json` and returns the document. */
async function verify(url: string, flags: object): Promise<unknown> {
  let out = ''
  const io = {
    stdout: { write: (written: string) => (out += written) },
    stderr: { write: () => {} },
    env: {},
    onStop: () => {},
  }
  await verifyCommand(url, { passwordFile: writePassword(), json: true, ...FLAGS, ...flags }, io)
  return JSON.parse(out)
}

/** The method and the path of each request, from the access log. */
function requestsOf(sidecar: TestSidecar): readonly { readonly method: string; readonly path: string }[] {
  return sidecar
    .logLines()
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === 'request')
}

it('H126 a run sends the API only GET, HEAD and OPTIONS for its path, and not more than it announces', async () => {
  const sidecar = await startServer()
  const flags = { path: '/status?verbose=1', quick: true }
  const { plan } = (await verify(sidecar.url, { ...flags, dryRun: true })) as { plan: Plan }
  expect(requestsOf(sidecar)).toEqual([])
  const { result, requests } = (await verify(sidecar.url, flags)) as Report
  expect(result).toBe('kept')

  const sent = requestsOf(sidecar)
  expect(requests).toBeLessThanOrEqual(plan.requests)
  // Bytes that are no request, such as two Host fields, have no line.
  expect(sent.length).toBeLessThanOrEqual(requests)
  expect(sent.length).toBeGreaterThan(20)
  const posts = sent.filter(({ method }) => !['GET', 'HEAD', 'OPTIONS'].includes(method))
  for (const { method, path } of posts) {
    expect(`${method} ${decodeURIComponent(path).toLowerCase()}`).toMatch(
      /^POST \/+(?:oauth\/\.\/|x\/\.\.\/)?oauth\//,
    )
  }
  expect(await sidecar.metric('postern_tokens_issued_total', { grant: 'password' })).toBeLessThanOrEqual(
    plan.logins,
  )
  expect(await sidecar.metric('postern_password_failures_total')).toBeLessThanOrEqual(plan.wrongPasswords)
  const atDevice = new Set(sidecar.device.requests.map(({ method, target }) => `${method} ${target}`))
  expect([...atDevice].filter((each) => !/^(?:GET|HEAD|OPTIONS) \/status\?verbose=1/.test(each))).toEqual([])
  expect(await sidecar.metric('postern_tokens')).toBe(0)
}, 60_000)

it('H126 a whole run, but for its floods, sends not more than it announces', async () => {
  const sidecar = await startServer()
  const flags = { only: [...OUTSIDE.keys()].filter((id) => !floods.promises.includes(id)).join(',') }
  const { plan } = (await verify(sidecar.url, { ...flags, dryRun: true })) as { plan: Plan }
  const report = (await verify(sidecar.url, flags)) as Report
  expect([plan.floods, report.floods]).toEqual([null, []])
  expect(report.requests).toBeLessThanOrEqual(plan.requests)
  expect(report.seconds).toBeLessThanOrEqual(2 * plan.seconds)
  const logins = await sidecar.metric('postern_tokens_issued_total', { grant: 'password' })
  expect(logins).toBeLessThanOrEqual(plan.logins)
}, 180_000)

it('H126 Ctrl-C ends a run after its tokens are revoked', async () => {
  const sidecar = await startServer()
  const args = [
    'verify',
    sidecar.url,
    '--password-file',
    writePassword(),
    '--api-limit',
    '20/4',
    '--oauth-limit',
    '15/4',
  ]
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
}, 60_000)
