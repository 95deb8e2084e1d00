import { expect, it } from 'vitest'
import { OUTSIDE } from '../../src/verify/promises.ts'
import { makeNames, passwordOf } from '../support/names.ts'
import { PASSWORD, type SidecarOptions, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { brokenIn, idsOf, movedTime, runOptions, runVerify } from './a-run.ts'

const SETTINGS = { oauth: { revocation_path: '/oauth/revoke' } }

function start({ config = {}, ...options }: SidecarOptions): Promise<TestSidecar> {
  return startSidecar({ documentedLimits: true, ...options, config: { ...SETTINGS, ...config } })
}

/** Settings of Postern with which it keeps the documented API. */
const KEEPING: Readonly<Record<string, SidecarOptions>> = {
  'over cleartext': { transport: 'http1' },
  'over TLS and HTTP/2': { transport: 'h2' },
  'that replaces refresh tokens': { config: { tokens: { rotate_refresh: true } } },
  'that counts by login': { transport: 'tls', config: { limits: { api: { per: 'grant' } } } },
}

it.each(Object.entries(KEEPING))('H127 Postern %s keeps every promise', async (_name, settings) => {
  const time = movedTime()
  const sidecar = await start({ ...settings, clock: time })
  const options = runOptions(sidecar.url, PASSWORD, { revocationPath: '/oauth/revoke' })
  const { report, decided } = await runVerify(options, time)
  expect(brokenIn(report)).toEqual({})
  expect(idsOf(report, 'not testable')).toEqual(['C8'])
  expect(decided.map(({ id }) => id).sort()).toEqual([...OUTSIDE.keys()].sort())
  expect(report.tokens).toBe('the server answered 200 to each revocation')
  expect(await sidecar.metric('postern_tokens')).toBe(0)
})

it('H127 `status_codes: http` departs from the statuses of the documented API, and from nothing else', async () => {
  const time = movedTime()
  const sidecar = await start({ transport: 'tls', clock: time, config: { status_codes: 'http' } })
  const { report } = await runVerify(runOptions(sidecar.url, PASSWORD, { quick: true }), time)
  expect(idsOf(report, 'broken')).toEqual(['C2', 'C19'])
})

it('checks only the promises that were asked for', async () => {
  const time = movedTime()
  const { url } = await start({ clock: time })
  const { report, decided } = await runVerify(runOptions(url, PASSWORD, { only: ['C11', 'C5'] }), time)
  expect(decided.map(({ id, result }) => [id, result])).toEqual([
    ['C5', 'kept'],
    ['C11', 'kept'],
  ])
  expect(report.requests).toBeLessThan(60)
})

it('a password whose name may not read the path ends the run, which says so and revokes its tokens', async () => {
  const names = makeNames({ admin: undefined, monitor: [{ methods: ['GET'], paths: ['/api/status'] }] })
  const time = movedTime()
  const sidecar = await start({ clock: time, config: { ...SETTINGS, ...names.config } })
  const options = (path: string) =>
    runOptions(sidecar.url, passwordOf('monitor'), { path, only: ['C4', 'C10', 'C11'] })
  await expect(runVerify({ ...options('/api/other'), revocationPath: '/oauth/revoke' })).rejects.toThrow(
    /the name of this password may not GET \/api\/other: 400 insufficient_scope.*--path/,
  )
  expect((await sidecar.overview.grants()) as object).toMatchObject({ total: 0 })
  expect(brokenIn((await runVerify(options('/api/status'), time)).report)).toEqual({})
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
