import { beforeAll, describe, expect, it } from 'vitest'
import { OUTSIDE } from '../../src/promises/promises.ts'
import { planOf } from '../../src/verify/verify.ts'
import { prepareSite, type Served, type Site, type SiteOptions } from '../process/serve.ts'
import { PASSWORD } from '../support/sidecar.ts'
import { brokenIn, idsOf, type Run, runOptions, runVerify, SHORT } from './a-run.ts'

const WINDOWS = { api: { requests: 60, window: '3s' }, oauth: { requests: 30, window: '3s' } }

function siteWith({ config = {}, ...options }: SiteOptions): Promise<Site> {
  return prepareSite({
    ...options,
    config: { limits: WINDOWS, oauth: { revocation_path: '/oauth/revoke' }, ...config },
  })
}

async function serve(options: SiteOptions): Promise<Served> {
  return (await siteWith(options)).serve()
}

const ALL = [...OUTSIDE.keys()]

/** Settings of Postern with which it keeps the documented API. */
const KEEPING: Readonly<Record<string, SiteOptions>> = {
  'over cleartext': { transport: 'http1' },
  'over TLS and HTTP/2': { transport: 'h2' },
  'that replaces refresh tokens': { transport: 'tls', config: { tokens: { rotate_refresh: true } } },
  'that counts by login': {
    transport: 'tls',
    config: { limits: { api: { ...WINDOWS.api, per: 'grant' }, oauth: WINDOWS.oauth } },
  },
}

describe('Postern', () => {
  interface Result {
    readonly run: Run
    /** Logins that were left at the end. */
    readonly grants: number
    /** `METHOD target` of every request that reached the device. */
    readonly atDevice: readonly string[]
  }
  const runs = new Map<string, Result>()

  // All at once, because a run mostly waits.
  beforeAll(async () => {
    await Promise.all(
      Object.entries(KEEPING).map(async ([name, options]) => {
        const site = await siteWith(options)
        const sidecar = await site.serve()
        const run = await runVerify(runOptions(sidecar.url, PASSWORD))
        const atDevice = site.device.requests.map(({ method, target }) => `${method} ${target}`)
        runs.set(name, { run, grants: (await sidecar.status()).grants.length, atDevice })
      }),
    )
  }, 120_000)

  it.each(Object.keys(KEEPING))('H127 %s keeps every promise', (name) => {
    const { run, grants } = runs.get(name) ?? expect.unreachable()
    expect(brokenIn(run.report)).toEqual({})
    expect(idsOf(run.report, 'not testable')).toEqual(['C8'])
    expect(run.decided.map(({ id }) => id).sort()).toEqual([...ALL].sort())
    expect(run.report.tokens).toBe('all tokens of the run are revoked')
    expect(grants).toBe(0)
  })

  it.each(Object.keys(KEEPING))(
    'H126 %s passes on nothing but GET for the path, in its usual spelling',
    (name) => {
      const { atDevice } = runs.get(name) ?? expect.unreachable()
      expect(atDevice.length).toBeGreaterThan(100)
      const usual = /^GET \/{1,2}api\/status(?:\?postern-verify)?$/
      expect(atDevice.filter((request) => !usual.test(request))).toEqual([])
    },
  )
})

it('H127 `status_codes: http` departs from the statuses of the documented API, and from nothing else', async () => {
  const sidecar = await serve({ transport: 'tls', config: { status_codes: 'http' } })
  const { report } = await runVerify(runOptions(sidecar.url, PASSWORD, { quick: true }))
  expect(idsOf(report, 'broken')).toEqual(['C2', 'C19'])
}, 60_000)

it('H126 a quick run waits for no window, sends what it has announced, and leaves no login behind', async () => {
  const sidecar = await serve({
    transport: 'tls',
    config: { limits: { api: { requests: 60, window: '60s' }, oauth: { requests: 30, window: '60s' } } },
  })
  const limits = { api: { requests: 60, window: 60 }, oauth: { requests: 30, window: 60 } }
  const options = runOptions(sidecar.url, PASSWORD, { quick: true, limits })
  const { report, progress } = await runVerify(options)
  expect(brokenIn(report)).toEqual({})
  expect(idsOf(report, 'not testable')).toEqual(['C8', 'C14', 'H125'])
  expect(progress).toEqual([])
  const plan = planOf(options)
  expect(report.requests).toBeLessThanOrEqual(plan.requests)
  const logins = await sidecar.metric('postern_grants_total', 'grant="password"')
  expect(logins).toBeLessThanOrEqual(plan.logins + plan.wrongPasswords)
  expect((await sidecar.status()).grants).toEqual([])
}, 60_000)

it('checks only the promises that were asked for', async () => {
  const sidecar = await serve({ transport: 'http1' })
  const { report, decided } = await runVerify(runOptions(sidecar.url, PASSWORD, { only: ['C11', 'C5'] }))
  expect(decided.map(({ id, result }) => [id, result])).toEqual([
    ['C5', 'kept'],
    ['C11', 'kept'],
  ])
  expect(report.requests).toBeLessThan(60)
}, 60_000)

it('H126 a run that is broken off revokes its logins', async () => {
  const sidecar = await serve({ transport: 'tls' })
  const stop = new AbortController()
  const options = runOptions(sidecar.url, PASSWORD, { limits: SHORT })
  const running = runVerify(options, stop.signal)
  await expect.poll(async () => (await sidecar.status()).grants.length).toBeGreaterThan(0)
  stop.abort(new Error('stopped'))
  await expect(running).rejects.toThrow('stopped')
  expect((await sidecar.status()).grants).toEqual([])
}, 60_000)

it('fails without a verdict when the password is wrong, and quotes neither it nor the right one', async () => {
  const sidecar = await serve({ transport: 'http1' })
  const run = runVerify(runOptions(sidecar.url, 'not the password'))
  await expect(run).rejects.toThrow(
    /does not accept the password: 400 .*invalid_grant.*correct the password file/,
  )
  await expect(run).rejects.not.toThrow('not the password')
})

it('sends nothing to a server whose certificate is not trusted, and names the flag that helps', async () => {
  const sidecar = await serve({ transport: 'tls' })
  const tls = { ca: undefined, insecure: false }
  await expect(runVerify(runOptions(sidecar.url, PASSWORD, { tls }))).rejects.toThrow(/certificate.*--ca/)
  expect(await sidecar.metric('postern_requests_total')).toBe(0)
})
