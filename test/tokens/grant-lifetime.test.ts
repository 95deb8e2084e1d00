import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import type { IssuedTokens } from '../../src/tokens/mint.ts'
import { passing } from '../fleet/passing.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { stillClock } from '../support/clock.ts'
import { startRedis } from '../support/redis.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { describeProtocols } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'
import { type JournaledStore, openJournaledStore } from './journaled-store.ts'
import { createTestStore, DAY, HOUR, POLICY, present, SECOND, WEEK } from './support.ts'

const MINUTE = 60 * SECOND
const BOUNDED = { rotateRefresh: true, grantLifetime: 2 * DAY }

const lives = ({ store }: Pick<JournaledStore, 'store'>, { accessToken }: IssuedTokens): boolean =>
  store.identify(accessToken).kind === 'valid'

describe('H311 tokens.grant_lifetime', () => {
  test('H311 ends a login that is refreshed all the time, and no token outlives it', () => {
    const opened = createTestStore(BOUNDED)
    const { store, clock } = opened
    let issued = store.issue('a', 'password')
    const end = clock.wall() + 2 * DAY
    expect(store.grants()).toMatchObject([{ expiresAt: end }])
    for (let at = 0; at < 47; at += 1) {
      clock.advance(HOUR)
      issued = present(store.refresh(issued.refreshToken))
      expect(issued.expiresIn).toBe(3600)
    }
    clock.advance(HOUR - 90 * SECOND)
    issued = present(store.refresh(issued.refreshToken))
    expect(issued.expiresIn).toBe(90)
    expect(store.grants()).toMatchObject([{ expiresAt: end }])
    clock.advance(90 * SECOND - 1)
    expect(lives(opened, issued)).toBe(true)
    clock.advance(1)
    expect(store.identify(issued.accessToken)).toEqual({ kind: 'refused', cause: 'expired' })
    expect(store.refresh(issued.refreshToken)).toBeUndefined()
    expect(store.grants()).toEqual([])
  })

  test('H311 may be shorter than the lifetimes of the tokens, also without rotation', () => {
    const opened = createTestStore({ grantLifetime: 10 * MINUTE })
    const { store, clock } = opened
    const issued = store.issue('a', 'password')
    expect(issued.expiresIn).toBe(600)
    clock.advance(10 * MINUTE - 1)
    expect(lives(opened, issued)).toBe(true)
    clock.advance(1)
    expect(lives(opened, issued)).toBe(false)
    expect(store.refresh(issued.refreshToken)).toBeUndefined()
  })

  test.each([{ rotateRefresh: true }, { rotateRefresh: false }])(
    'H311 in its last second a login gets no token: `expires_in` is never 0, %o',
    (rotation) => {
      const { store, clock } = createTestStore({ ...rotation, grantLifetime: 10 * SECOND })
      const { refreshToken } = store.issue('a', 'password')
      clock.advance(9 * SECOND)
      const issued = present(store.refresh(refreshToken))
      expect(issued.expiresIn).toBe(1)
      clock.advance(1)
      expect(store.refresh(issued.refreshToken)).toBeUndefined()
      // That is no reuse, so what it has lives on.
      expect(store.identify(issued.accessToken).kind).toBe('valid')
    },
  )

  test('H311 a reload that switches it on ends the logins that are older, and one that switches it off prolongs none', () => {
    const dir = join(temporaryDirectory(), 'state')
    const clock = stillClock()
    const first = openJournaledStore(dir, { clock, rotateRefresh: true })
    const old = first.store.issue('a', 'password')
    clock.advance(3 * DAY)
    const young = first.store.issue('b', 'password')
    first.store.applyPolicy({ ...POLICY, ...BOUNDED })
    expect(first.store.refresh(old.refreshToken)).toBeUndefined()
    const end = clock.wall() + 2 * DAY
    expect(first.store.grants()).toMatchObject([{ client: 'b', expiresAt: end }])
    first.store.applyPolicy({ ...POLICY, rotateRefresh: true })
    expect(first.store.grants()).toMatchObject([{ client: 'b', expiresAt: end }])
    first.journal.close()
    const second = openJournaledStore(dir, { clock, rotateRefresh: true })
    expect(second.store.grants()).toMatchObject([{ client: 'b', expiresAt: end }])
    expect(lives(second, young)).toBe(true)
  })

  test('H311 a restart keeps the end of a login, and one that switches it on ends those of the token file', () => {
    const dir = join(temporaryDirectory(), 'state')
    const clock = stillClock()
    const first = openJournaledStore(dir, { clock, rotateRefresh: true })
    const issued = first.store.issue('a', 'password')
    const end = clock.wall() + 2 * DAY
    clock.advance(DAY)
    first.journal.close()
    const second = openJournaledStore(dir, { clock, ...BOUNDED })
    const next = present(second.store.refresh(issued.refreshToken))
    expect(second.store.grants()).toMatchObject([{ expiresAt: end }])
    clock.advance(DAY - MINUTE)
    second.journal.close()
    const third = openJournaledStore(dir, { clock, ...BOUNDED })
    const last = present(third.store.refresh(next.refreshToken))
    expect(last.expiresIn).toBe(60)
    clock.advance(MINUTE)
    expect(lives(third, last)).toBe(false)
    expect(third.store.refresh(last.refreshToken)).toBeUndefined()
  })

  test.each([-365 * DAY, -WEEK, -HOUR])(
    'H311 a clock that is set by %i ms gives a login no more time',
    (by) => {
      const dir = join(temporaryDirectory(), 'state')
      const clock = stillClock()
      const first = openJournaledStore(dir, { clock, ...BOUNDED })
      let issued = first.store.issue('a', 'password')
      first.journal.close()
      const opened = openJournaledStore(dir, { clock, ...BOUNDED })
      clock.jumpWall(by)
      opened.store.sweep()
      for (let hours = 0; hours < 47; hours += 1) {
        clock.advance(HOUR)
        issued = present(opened.store.refresh(issued.refreshToken))
      }
      clock.advance(HOUR)
      expect(lives(opened, issued)).toBe(false)
      expect(opened.store.refresh(issued.refreshToken)).toBeUndefined()
    },
  )

  test('H311 a clock that is set ahead ends the tokens of this run, too, when their login is over', () => {
    const dir = join(temporaryDirectory(), 'state')
    const clock = stillClock()
    const first = openJournaledStore(dir, { clock, ...BOUNDED })
    const old = first.store.issue('a', 'password')
    first.journal.close()
    const opened = openJournaledStore(dir, { clock, ...BOUNDED })
    const issued = present(opened.store.refresh(old.refreshToken))
    clock.jumpWall(2 * DAY)
    opened.store.sweep()
    expect(lives(opened, issued)).toBe(false)
    expect(opened.store.refresh(issued.refreshToken)).toBeUndefined()
  })
})

const refresh = (sidecar: TestSidecar, token: string) =>
  sidecar.postToken({ grant_type: 'refresh_token', refresh_token: token })

describeProtocols('H311 A login that ends', (transport) => {
  it('H311 closes its WebSocket, though it was refreshed in time', async () => {
    const tokens = { rotate_refresh: true, grant_lifetime: '90m' }
    const config = { tokens, upstream: { tunnel_idle_timeout: '1d' } }
    const sidecar = await startSidecar({ transport, clock: stillClock(), config })
    acceptWebSockets(sidecar.device)
    const first = await sidecar.grant()
    expect(first.expires_in).toBe(3600)
    const { socket } = await openWebSocket(sidecar.url, { token: first.access_token })
    await sidecar.clock.advance(HOUR)
    const second = (await refresh(sidecar, first.refresh_token)).json()
    expect(second.expires_in).toBe(1800)
    const closed = once(socket, 'close')
    await sidecar.clock.advance(HOUR / 2 - 1)
    expect((await sidecar.request({ token: String(second.access_token) })).status).toBe(200)
    await sidecar.clock.advance(1)
    await closed
    const late = await sidecar.request({ token: String(second.access_token) })
    expect([late.status, late.json().error]).toEqual([401, 'invalid_token'])
    expect((await refresh(sidecar, String(second.refresh_token))).status).toBe(400)
  })
})

describe('H311 in a fleet', () => {
  /** Sidecars with one clock. */
  async function fleet(...all: readonly YamlPart[]): Promise<readonly TestSidecar[]> {
    needs('redis-server')
    const clock = stillClock()
    const redis = await startRedis()
    const store = `valkey://${redis.at}`
    return Promise.all(all.map((tokens) => startSidecar({ clock, config: { tokens: { store, ...tokens } } })))
  }

  it('H311 no token outlives its login, whichever sidecar refreshes it', async () => {
    const bounded = { rotate_refresh: true, grant_lifetime: '100s' }
    const [one, two] = (await fleet(bounded, bounded)) as [TestSidecar, TestSidecar]
    const first = await one.grant()
    expect(first.expires_in).toBe(100)
    const second = (await refresh(two, first.refresh_token)).json()
    expect(second.expires_in).toBeLessThanOrEqual(100)
    expect(second.expires_in).toBeGreaterThan(0)
    const grants = await two.overview.grants()
    if (grants === 'unavailable') expect.unreachable()
    const [grant] = grants.rows
    expect((grant?.expiresAt ?? 0) - (grant?.issuedAt ?? 0)).toBeLessThanOrEqual(100_000)
  })

  it('H311 in its last second a login gets no token: `expires_in` is never 0', async () => {
    const [one] = (await fleet({ grant_lifetime: '1s' })) as [TestSidecar]
    const first = await one.grant()
    expect(first.expires_in).toBe(1)
    const response = await refresh(one, first.refresh_token)
    // Within the same millisecond of the server as the login, a whole second is left.
    if (response.status === 200) expect(response.json().expires_in).toBe(1)
    else expect(response.json().error).toBe('invalid_grant')
  })

  it('H311 a reload that switches it on ends the logins that are older, with their streams', async () => {
    const [sidecar] = (await fleet({})) as [TestSidecar]
    acceptWebSockets(sidecar.device)
    const issued = await sidecar.grant()
    const { socket } = await openWebSocket(sidecar.url, { token: issued.access_token })
    await sidecar.reload({ tokens: { grant_lifetime: '1s' } })
    await expect.poll(passing([sidecar], () => socket.readyState)).toBe(socket.CLOSED)
    expect((await sidecar.request({ token: issued.access_token })).status).toBe(401)
    expect((await refresh(sidecar, issued.refresh_token)).status).toBe(400)
  })

  it('H311 a sidecar where it is on ends a login of one where it is off', async () => {
    const [one, two] = (await fleet({}, { grant_lifetime: '1s' })) as [TestSidecar, TestSidecar]
    const issued = await one.grant()
    const use = async (): Promise<number> => (await two.request({ token: issued.access_token })).status
    await expect.poll(passing([two], use)).toBe(401)
    expect((await refresh(two, issued.refresh_token)).status).toBe(400)
  })
})
