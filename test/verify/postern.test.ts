import { beforeAll, expect, it } from 'vitest'
import { DOCUMENTED_LIMITS, type VerifyOptions } from '../../src/verify/options.ts'
import { OUTSIDE, type OutsideId } from '../../src/verify/promises.ts'
import { prepareSite, type SiteOptions } from '../process/serve.ts'
import { makeNames, passwordOf } from '../support/names.ts'
import { PASSWORD, type SidecarOptions, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { brokenIn, idsOf, inTurn, type Run, runOptions, runVerify, WITHOUT_FLOODS } from './a-run.ts'

/** Seconds. A busy machine does not use up a much shorter window in time. */
const WINDOW = 10

const LIMITS: VerifyOptions['limits'] = {
  api: { requests: DOCUMENTED_LIMITS.api.requests, window: WINDOW },
  oauth: { requests: DOCUMENTED_LIMITS.oauth.requests, window: WINDOW },
}

const WINDOWS = {
  api: { requests: LIMITS.api.requests, window: `${WINDOW}s` },
  oauth: { requests: LIMITS.oauth.requests, window: `${WINDOW}s` },
}

const SETTINGS = { limits: WINDOWS, oauth: { revocation_path: '/oauth/revoke' } }

interface Keeping {
  readonly site: SiteOptions
  readonly only?: readonly OutsideId[]
}

/** Settings of Postern with which it keeps the documented API. */
const KEEPING: Readonly<Record<string, Keeping>> = {
  'over cleartext': { site: { transport: 'http1' } },
  'over TLS and HTTP/2': { site: { transport: 'h2' } },
  // This run is 12 s longer (C6), and floods contain no refresh.
  'that replaces refresh tokens': {
    site: { transport: 'http1', config: { tokens: { rotate_refresh: true } } },
    only: WITHOUT_FLOODS,
  },
  'that counts by login': {
    site: {
      transport: 'tls',
      config: { limits: { api: { ...WINDOWS.api, per: 'grant' }, oauth: WINDOWS.oauth } },
    },
    // A flood is of one login.
    only: WITHOUT_FLOODS,
  },
}

interface Result {
  readonly run: Run
  /** Logins that were left at the end. */
  readonly grants: number
}
let results: ReadonlyMap<string, Promise<Result>>

// All at once, because a run mostly waits. The short tests come first, so that they take none of that time.
beforeAll(async () => {
  const names = Object.keys(KEEPING)
  const servers = new Map(
    await Promise.all(
      names.map(async (name) => {
        const { config = {}, ...options } = KEEPING[name]?.site ?? {}
        const site = await prepareSite({ ...options, config: { ...SETTINGS, ...config } })
        return [name, await site.serve()] as const
      }),
    ),
  )
  results = inTurn(names, names.length, async (name) => {
    const server = servers.get(name) ?? expect.unreachable()
    const run = await runVerify(
      runOptions(server.url, PASSWORD, { limits: LIMITS, only: KEEPING[name]?.only ?? [] }),
    )
    return { run, grants: (await server.status()).grants.length }
  })
})

function start({ config = {}, ...options }: SidecarOptions): Promise<TestSidecar> {
  return startSidecar({ ...options, config: { ...SETTINGS, ...config } })
}

it('H127 `status_codes: http` departs from the statuses of the documented API, and from nothing else', async () => {
  const sidecar = await start({ transport: 'tls', config: { status_codes: 'http' } })
  const { report } = await runVerify(runOptions(sidecar.url, PASSWORD, { limits: LIMITS, quick: true }))
  expect(idsOf(report, 'broken')).toEqual(['C2', 'C19'])
})

it('checks only the promises that were asked for', async () => {
  const { url } = await start({})
  const { report, decided } = await runVerify(
    runOptions(url, PASSWORD, { limits: LIMITS, only: ['C11', 'C5'] }),
  )
  expect(decided.map(({ id, result }) => [id, result])).toEqual([
    ['C5', 'kept'],
    ['C11', 'kept'],
  ])
  expect(report.requests).toBeLessThan(60)
})

it('a password whose name may not read the path ends the run, which says so and revokes its tokens', async () => {
  const names = makeNames({ admin: undefined, monitor: [{ methods: ['GET'], paths: ['/api/status'] }] })
  const sidecar = await start({ config: { ...SETTINGS, ...names.config } })
  const options = (path: string) =>
    runOptions(sidecar.url, passwordOf('monitor'), { limits: LIMITS, path, only: ['C4', 'C10', 'C11'] })
  await expect(runVerify({ ...options('/api/other'), revocationPath: '/oauth/revoke' })).rejects.toThrow(
    /the name of this password may not GET \/api\/other: 400 insufficient_scope.*--path/,
  )
  expect((await sidecar.overview.grants()) as object).toMatchObject({ total: 0 })
  expect(brokenIn((await runVerify(options('/api/status'))).report)).toEqual({})
})

it('fails without a verdict when the password is wrong, and quotes neither it nor the right one', async () => {
  const { url } = await start({})
  const run = runVerify(runOptions(url, 'not the password'))
  await expect(run).rejects.toThrow(
    /does not accept the password: 400 .*invalid_grant.*correct the password file/,
  )
  await expect(run).rejects.not.toThrow('not the password')
})

it('sends nothing to a server whose certificate is not trusted, and names the flag that helps', async () => {
  const sidecar = await start({ transport: 'tls' })
  const tls = { ca: undefined, insecure: false }
  await expect(runVerify(runOptions(sidecar.url, PASSWORD, { tls }))).rejects.toThrow(/certificate.*--ca/)
  expect(await sidecar.metric('postern_requests_total')).toBe(0)
})

it.each(Object.keys(KEEPING))('H127 Postern %s keeps every promise', async (name) => {
  const { run, grants } = (await results.get(name)) ?? expect.unreachable()
  const all = KEEPING[name]?.only ?? [...OUTSIDE.keys()]
  expect(brokenIn(run.report)).toEqual({})
  expect(idsOf(run.report, 'not testable')).toEqual(['C8'])
  expect(run.decided.map(({ id }) => id).sort()).toEqual([...all].sort())
  expect(run.report.tokens).toBe('the server answered 200 to each revocation')
  expect(grants).toBe(0)
})
