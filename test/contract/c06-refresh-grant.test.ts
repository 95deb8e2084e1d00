import { beforeAll, describe, expect, it } from 'vitest'
import { stillClock } from '../support/clock.ts'
import { expectError } from '../support/expectations.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'

const day = 86_400_000

async function status(sidecar: TestSidecar, token: string): Promise<number> {
  return (await sidecar.request({ path: '/x', token })).status
}

const post = (sidecar: TestSidecar, refresh_token: string) =>
  sidecar.postToken({ grant_type: 'refresh_token', refresh_token })

// The stores know nothing of transports; over each, C4 shows a refresh.
describe('C6 The refresh grant', () => {
  // Shared by all tests: the clock goes on where the test before left it, and each test makes its own grants.
  let sidecar: TestSidecar
  beforeAll(async () => {
    sidecar = await startSidecar({ clock: stillClock() })
  })

  it('C6 a refresh gives a new access token and the same refresh token', async () => {
    const first = await sidecar.grant()
    const second = await sidecar.refresh(first.refresh_token)
    expect(second.access_token).not.toBe(first.access_token)
    expect(second.refresh_token).toBe(first.refresh_token)
    expect(second.expires_in).toBe(3600)
    expect(await status(sidecar, second.access_token)).toBe(200)
  })

  it('C6 the earlier access token stays valid until it expires', async () => {
    const first = await sidecar.grant()
    await sidecar.clock.leap(1_800_000)
    const second = await sidecar.refresh(first.refresh_token)
    expect(await status(sidecar, first.access_token)).toBe(200)
    await sidecar.clock.leap(1_800_000)
    expect(await status(sidecar, first.access_token)).toBe(401)
    expect(await status(sidecar, second.access_token)).toBe(200)
  })

  it('C6 a refresh token is valid after the access token of the same grant has expired', async () => {
    const first = await sidecar.grant()
    await sidecar.clock.leap(2 * day)
    expect(await status(sidecar, first.access_token)).toBe(401)
    const second = await sidecar.refresh(first.refresh_token)
    expect(await status(sidecar, second.access_token)).toBe(200)
  })

  it('C6 a refresh does not prolong the refresh token: it expires one week after the password grant', async () => {
    const { refresh_token } = await sidecar.grant()
    for (let passed = 1; passed < 7; passed += 1) {
      await sidecar.clock.leap(day)
      await sidecar.refresh(refresh_token)
    }
    await sidecar.clock.leap(day - 1000)
    const last = await sidecar.refresh(refresh_token)
    await sidecar.clock.leap(1000)
    expectError(await post(sidecar, refresh_token), 400, 'invalid_grant')
    expect(await status(sidecar, last.access_token)).toBe(200)
  })

  it('C6 ten concurrent refreshes with one refresh token give ten access tokens', async () => {
    const { refresh_token } = await sidecar.grant()
    const all = await Promise.all(Array.from({ length: 10 }, () => sidecar.refresh(refresh_token)))
    expect(new Set(all.map((tokens) => tokens.access_token)).size).toBe(10)
    for (const { access_token } of all) expect(await status(sidecar, access_token)).toBe(200)
  })
})

describe('C6 The refresh grant with rotate_refresh', () => {
  let sidecar: TestSidecar
  beforeAll(async () => {
    sidecar = await startSidecar({
      clock: stillClock(),
      config: { tokens: { rotate_refresh: true } },
    })
  })

  it('C6 each rotating refresh gives a new refresh token, which the next one accepts', async () => {
    const first = await sidecar.grant()
    const second = await sidecar.refresh(first.refresh_token)
    expect(second.refresh_token).not.toBe(first.refresh_token)
    const third = await sidecar.refresh(second.refresh_token)
    expect(new Set([first, second, third].map((tokens) => tokens.refresh_token)).size).toBe(3)
    for (const { access_token } of [first, second, third])
      expect(await status(sidecar, access_token)).toBe(200)
  })

  it('C6 a retry within the grace gets the same tokens again', async () => {
    const first = await sidecar.grant()
    const second = await sidecar.refresh(first.refresh_token)
    expect(await sidecar.refresh(first.refresh_token)).toEqual(second)
    await sidecar.clock.leap(9000)
    const late = await sidecar.refresh(first.refresh_token)
    expect([late.access_token, late.refresh_token]).toEqual([second.access_token, second.refresh_token])
    await sidecar.refresh(second.refresh_token)
  })

  it('C6 H33 ten concurrent refreshes with one refresh token give one new pair', async () => {
    const first = await sidecar.grant()
    const all = await Promise.all(Array.from({ length: 10 }, () => sidecar.refresh(first.refresh_token)))
    const pairs = new Set(all.map((tokens) => `${tokens.access_token} ${tokens.refresh_token}`))
    expect(pairs.size).toBe(1)
    const before = [first.access_token, first.refresh_token]
    for (const { access_token, refresh_token } of all) {
      expect(before).not.toContain(access_token)
      expect(before).not.toContain(refresh_token)
    }
  })

  it('C6 reuse after the grace revokes the whole grant, and no other', async () => {
    const other = await sidecar.grant()
    const first = await sidecar.grant()
    const second = await sidecar.refresh(first.refresh_token)
    const third = await sidecar.refresh(second.refresh_token)
    await sidecar.clock.leap(11_000)
    expect(await status(sidecar, third.access_token)).toBe(200)
    expectError(await post(sidecar, first.refresh_token), 400, 'invalid_grant')
    for (const { access_token, refresh_token } of [first, second, third]) {
      expect(await status(sidecar, access_token)).toBe(401)
      expectError(await post(sidecar, refresh_token), 400, 'invalid_grant')
    }
    expect(await status(sidecar, other.access_token)).toBe(200)
    await sidecar.refresh(other.refresh_token)
  })

  it('C6 tokens.refresh_grace sets the length of the grace', async () => {
    const config = { tokens: { rotate_refresh: true, refresh_grace: '60s' } }
    const patient = await startSidecar({ clock: stillClock(), config })
    const first = await patient.grant()
    const second = await patient.refresh(first.refresh_token)
    await patient.clock.leap(59_000)
    expect((await patient.refresh(first.refresh_token)).refresh_token).toBe(second.refresh_token)
    await patient.clock.leap(2000)
    expectError(await post(patient, first.refresh_token), 400, 'invalid_grant')
  })
})
