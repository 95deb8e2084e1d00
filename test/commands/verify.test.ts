import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { type Checks, type VerifyCommandFlags, verifyCommand } from '../../src/commands/verify.ts'
import { SetupError } from '../../src/system/setup-error.ts'
import { OUTSIDE } from '../../src/verify/promises.ts'
import type { Report, Reporter, Verdict } from '../../src/verify/verdict.ts'
import { temporaryDirectory } from '../support/certificate.ts'

let passwordFile: string

beforeEach(() => {
  passwordFile = join(temporaryDirectory(), 'password')
  writeFileSync(passwordFile, 'hunter2\n', { mode: 0o600 })
})

function verdictOf(id: 'C4' | 'C16', result: Verdict['result']): Verdict {
  const departures =
    result === 'broken' ? [{ sent: 'GET /', came: '200', wanted: '401', clause: 'RFC 6750' }] : []
  return { id, sentence: OUTSIDE.get(id)?.sentence ?? '', clause: 'x', result, departures, notes: [] }
}

function reportOf(...promises: readonly Verdict[]): Report {
  return {
    url: 'https://device.example',
    version: '1.2.3',
    startedAt: '2026-11-22T12:00:00.000Z',
    seconds: 1,
    requests: 10,
    result: promises.some(({ result }) => result === 'broken') ? 'broken' : 'kept',
    promises,
    floods: [],
    tokens: 'The tokens of the run are revoked.',
  }
}

const planOf: Checks['planOf'] = ({ url, path, only, flood, revocationPath }) => ({
  url: url.origin,
  path,
  promises: only,
  notTestable: [],
  logins: 2,
  wrongPasswords: 1,
  requests: 10,
  seconds: 3,
  floods: flood,
  usesUpLimits: true,
  otherSpellings: true,
  tokenInQuery: true,
  revocationPath,
})

/** Checks that decide so. */
function deciding(...promises: readonly Verdict[]): Checks {
  return {
    planOf,
    async verify(options, reporter) {
      reporter.announce(planOf(options))
      return finish(reporter, promises)
    },
  }
}

function finish(reporter: Reporter, promises: readonly Verdict[]): Report {
  for (const verdict of promises) reporter.decided(verdict)
  const report = reportOf(...promises)
  reporter.finished(report)
  return report
}

/** Runs the command. `stop` sends it a signal, and `loseOutput` breaks its standard output. */
function start(checks: Checks, flags: VerifyCommandFlags = {}, url = 'https://device.example') {
  const [out, err]: [string[], string[]] = [[], []]
  const listeners: (() => void)[] = []
  const losses: ((error: unknown) => void)[] = []
  const io = {
    stdout: { write: (text: string) => out.push(text) },
    stderr: { write: (text: string) => err.push(text) },
    env: {},
    onStop: (listener: () => void) => void listeners.push(listener),
    onLostOutput: (listener: (error: unknown) => void) => void losses.push(listener),
  }
  return {
    code: verifyCommand(url, { passwordFile, ...flags }, io, checks),
    stop: () => listeners.map((listener) => listener()),
    loseOutput: () => losses.map((listener) => listener(new Error('write EPIPE'))),
    stdout: () => out.join(''),
    stderr: () => err.join(''),
  }
}

const KEPT = verdictOf('C4', 'kept')
const BROKEN = verdictOf('C16', 'broken')

describe('postern verify', () => {
  it.each([
    [0, 'no promise is broken', [KEPT, verdictOf('C16', 'not testable')]],
    [1, 'a promise is broken', [KEPT, BROKEN]],
  ])('exits with %s if %s', async (code, _when, promises) => {
    const run = start(deciding(...promises))
    expect([await run.code, run.stderr()]).toEqual([code, ''])
    expect(run.stdout()).toMatch(/^0 promises .*\n\nkept {10}C4 .*\n\nRESULT .*; 10 requests in 1 s\n$/s)
  })

  it('with --json has the document alone on standard output, and the text on standard error', async () => {
    const run = start(deciding(KEPT, BROKEN), { json: true })
    expect(await run.code).toBe(1)
    expect(JSON.parse(run.stdout())).toMatchObject({ result: 'broken', kept: 1, broken: 1 })
    expect(run.stderr()).toMatch(/^0 promises .*RESULT /s)
  })

  it('with --dry-run sends nothing and says what a run would do', async () => {
    const checks: Checks = { planOf, verify: () => expect.fail('a request') }
    const text = start(checks, { dryRun: true, only: 'C4' })
    expect([await text.code, text.stderr()]).toEqual([0, ''])
    expect(text.stdout()).toMatch(/^1 promise of the documented API, .* {2}- logs in at most 2 times/s)
    const json = start(checks, { dryRun: true, json: true, only: 'C4' })
    expect([await json.code, JSON.parse(json.stdout()).plan]).toEqual([
      0,
      expect.objectContaining({ url: 'https://device.example', promises: ['C4'], logins: 2 }),
    ])
  })

  it('reports why a run could not take place, in words that cannot rewrite the screen', async () => {
    const failure = new SetupError('not the API: \x1b[2J', { exitCode: 1 })
    const run = start({ planOf, verify: () => Promise.reject(failure) }, { json: true })
    await expect(run.code).rejects.toMatchObject({ problems: ['not the API: \\x1b[2J'], exitCode: 1 })
    expect(run.stdout()).toBe('')
  })

  it('passes the options on', async () => {
    const flags = { path: '/x', quick: true, insecure: true }
    const seen: unknown[] = []
    const run = start(
      {
        planOf,
        async verify(options, reporter) {
          seen.push(options)
          return finish(reporter, [KEPT])
        },
      },
      flags,
    )
    await run.code
    expect(seen).toEqual([
      expect.objectContaining({ password: 'hunter2', path: '/x', quick: true, tls: { insecure: true } }),
    ])
  })
})

describe('a warning', () => {
  it('is for a password file that is open to others', async () => {
    chmodSync(passwordFile, 0o644)
    const run = start(deciding(KEPT))
    await run.code
    expect(run.stderr()).toBe(
      `WARNING --password-file: ${passwordFile}: others can read it; chmod 0600 ${passwordFile}\n`,
    )
  })

  it.each<readonly [url: string, flags: VerifyCommandFlags, says: string]>([
    [
      'http://192.0.2.7:8080',
      {},
      'WARNING the password and the tokens travel to 192.0.2.7:8080 unencrypted\n',
    ],
    [
      'http://127.0.0.1.example',
      {},
      'WARNING the password and the tokens travel to 127.0.0.1.example unencrypted\n',
    ],
    [
      'https://192.0.2.7',
      { insecure: true },
      'WARNING --insecure: whoever answers for 192.0.2.7 gets the password\n',
    ],
    ['https://192.0.2.7', {}, ''],
    ['http://127.0.0.1:8080', {}, ''],
    ['http://127.1:8080', {}, ''],
    ['http://[::1]:8080', {}, ''],
    ['http://localhost:8080', {}, ''],
    ['https://localhost:8443', { insecure: true }, ''],
  ])('for %s with %j is %j', async (url, flags, says) => {
    const run = start(deciding(KEPT), flags, url)
    await run.code
    expect(run.stderr()).toBe(says)
    const dry = start(deciding(), { ...flags, dryRun: true }, url)
    await dry.code
    expect(dry.stderr()).toBe(says)
  })
})

const STOPPED = 'the run was stopped before its end, so not every promise was checked'

describe('a run that is stopped', () => {
  it('revokes its tokens, keeps what it has said, and exits with 1', async () => {
    let revoked = false
    const run = start({
      planOf,
      async verify(_options, reporter, _clock, signal) {
        reporter.decided(KEPT)
        await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()))
        revoked = true
        throw signal?.reason
      },
    })
    await expect.poll(() => run.stop().length).toBe(1)
    await expect(run.code).rejects.toMatchObject({ exitCode: 1, message: STOPPED })
    expect(revoked).toBe(true)
    expect(run.stdout()).toMatch(/^kept {10}C4 /)
    expect(run.stderr()).toMatch(/^\npostern verify: stopping; a second signal .*\n$/)
  })

  it('by the loss of its output revokes its tokens', async () => {
    let revoked = false
    const run = start({
      planOf,
      async verify(_options, _reporter, _clock, signal) {
        await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()))
        revoked = true
        throw signal?.reason
      },
    })
    // A closed terminal causes both.
    await expect.poll(() => run.stop().length).toBe(1)
    run.loseOutput()
    await expect(run.code).rejects.toMatchObject({ exitCode: 1 })
    expect(revoked).toBe(true)
  })

  it('twice ends at once', async () => {
    const run = start({ planOf, verify: () => new Promise(() => {}) })
    await expect.poll(() => run.stop().length).toBe(1)
    run.stop()
    await expect(run.code).rejects.toMatchObject({ exitCode: 1 })
  })
})
