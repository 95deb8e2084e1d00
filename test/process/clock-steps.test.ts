import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Tokens } from '../support/sidecar.ts'
import { prepareSite, replaceFile, type Served, tokensOf } from './serve.ts'

const DAY = 86_400_000
const IN_1970 = -Date.now() + 20_000
const SET =
  'the clock was set: tokens of this run keep their age, those of the token file are judged by the new time'
const BEHIND = 'the clock is behind the last known time: tokens expire by that time until the clock is set'

/** A sidecar whose wall clock a test sets, over its restarts. */
async function siteWithClock(ahead: number) {
  const site = await prepareSite({
    config: { tokens: { rotate_refresh: true }, oauth: { revocation_path: '/oauth/revoke' } },
  })
  const file = join(site.directory, 'ahead')
  replaceFile(file, String(ahead))
  const preload = join(import.meta.dirname, 'wall-clock.cjs')
  return {
    site,
    set: (ms: number): void => replaceFile(file, String(ms)),
    serve: (): Promise<Served> =>
      site.serve({ env: { NODE_OPTIONS: `--require=${preload}`, WALL_CLOCK_AHEAD: file } }),
  }
}

it('H271 C7 logins, rotations and revocations outlive steps of the clock and restarts as a model says', async () => {
  const { set, serve } = await siteWithClock(IN_1970)
  /** The logins so far, and whether they live. */
  const model = new Map<Tokens, boolean>()
  async function compare(sidecar: Served): Promise<void> {
    const found = await Promise.all([...model.keys()].map(({ access_token }) => sidecar.use(access_token)))
    expect(found).toEqual([...model.values()].map((lives) => (lives ? 200 : 401)))
  }
  async function step(sidecar: Served, ms: number, said = SET): Promise<void> {
    const before = sidecar.logged(said).length
    set(ms)
    await sidecar.waitForLog(said, () => sidecar.logged(said).length > before)
    await compare(sidecar)
  }
  async function restart(sidecar: Served, ms: number, how: 'kill' | 'stop'): Promise<Served> {
    await sidecar[how]()
    set(ms)
    const next = await serve()
    await compare(next)
    return next
  }

  // A board without a battery: a login, a rotation and a revocation before its clock is set.
  let sidecar = await serve()
  const first = await sidecar.grant()
  const revoked = await sidecar.grant()
  await sidecar.postToken({ token: revoked.refresh_token }, { path: '/oauth/revoke' })
  model
    .set(first, true)
    .set(tokensOf(await sidecar.refresh(first.refresh_token)), true)
    .set(revoked, false)
  await step(sidecar, 0)
  sidecar = await restart(sidecar, 0, 'kill')

  // It starts in 1970 again: what it knows goes on from the last known time, then the clock is set eight days later.
  sidecar = await restart(sidecar, IN_1970, 'stop')
  expect(sidecar.logged(BEHIND)).toHaveLength(1)
  const late = await sidecar.grant()
  const [earlier] = [[...model.keys()]]
  model.set(late, true)
  for (const each of earlier) model.set(each, false)
  await step(sidecar, 8 * DAY)
  for (const { refresh_token } of earlier) expect((await sidecar.refresh(refresh_token)).status).toBe(400)

  // It is set back, once to what is believed, once to what is not.
  await step(sidecar, 7 * DAY)
  await step(sidecar, IN_1970, BEHIND)
  sidecar = await restart(sidecar, 7 * DAY, 'kill')
  expect((await sidecar.status()).grants).toHaveLength(1)
  const issuedAt = (await sidecar.status()).grants[0]?.issuedAt ?? 0
  expect(Math.abs(issuedAt - 7 * DAY - Date.now())).toBeLessThan(DAY / 2)
})

it('H279 the time of an attempt that an earlier run has planned is the one of the file, as soon as the clock is set', async () => {
  const { site, set, serve } = await siteWithClock(IN_1970)
  const until = Date.now() + DAY / 2
  const device = `${site.device.url} 1-64`
  mkdirSync(site.stateDir, { recursive: true })
  const guess = { places: 4, until, wait: DAY }
  writeFileSync(join(site.stateDir, 'ceilings.json'), JSON.stringify({ '': { device, guess } }))
  const sidecar = await serve()
  let present = Date.now() + IN_1970
  const days = async (): Promise<number> => {
    const { places } = await sidecar.status()
    return ((places[0]?.triedAgainAt ?? 0) - present) / DAY
  }
  expect(await days()).toBeGreaterThan(0.9)
  set(0)
  present = Date.now()
  await expect.poll(days).toBeLessThan(0.6)
  expect(await days()).toBeGreaterThan(0.4)
})
