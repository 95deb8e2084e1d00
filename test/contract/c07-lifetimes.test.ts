import { beforeAll, describe, expect, it } from 'vitest'
import { stillClock } from '../support/clock.ts'
import { expectError } from '../support/expectations.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'

const second = 1000
const hour = 3_600_000
const week = 604_800_000
const year = 31_536_000_000

async function isValid(sidecar: TestSidecar, token: string): Promise<boolean> {
  const { status } = await sidecar.request({ token })
  if (status !== 200 && status !== 401) throw new Error(`status ${status}`)
  return status === 200
}

async function canRefresh(sidecar: TestSidecar, refresh_token: string): Promise<boolean> {
  const response = await sidecar.postToken({ grant_type: 'refresh_token', refresh_token })
  if (response.status !== 200) expectError(response, 400, 'invalid_grant')
  return response.status === 200
}

describe('C7 The lifetime of tokens', () => {
  const start = (tokens = {}) => startSidecar({ clock: stillClock(), config: { tokens } })
  // Shared by all tests: the clock goes on where the test before left it, and each test makes its own grant.
  let sidecar: TestSidecar
  beforeAll(async () => {
    sidecar = await start()
  })

  it('C7 an access token is valid up to 3599.999 s and invalid at 3600 s', async () => {
    const token = await sidecar.token()
    await sidecar.clock.leap(hour - second)
    expect(await isValid(sidecar, token)).toBe(true)
    await sidecar.clock.leap(second - 1)
    expect(await isValid(sidecar, token)).toBe(true)
    await sidecar.clock.leap(1)
    expect(await isValid(sidecar, token)).toBe(false)
    await sidecar.clock.leap(year)
    expect(await isValid(sidecar, token)).toBe(false)
  })

  it('C7 a refresh token is valid at 604,799 s and invalid at 604,800 s', async () => {
    const { refresh_token } = await sidecar.grant()
    await sidecar.clock.leap(week - second)
    expect(await canRefresh(sidecar, refresh_token)).toBe(true)
    await sidecar.clock.leap(second)
    expect(await canRefresh(sidecar, refresh_token)).toBe(false)
  })

  it('C7 the access token of the last refresh is valid for one hour, even if the refresh token expires within it', async () => {
    const { refresh_token } = await sidecar.grant()
    await sidecar.clock.leap(week - second)
    const { access_token } = await sidecar.refresh(refresh_token)
    await sidecar.clock.leap(hour - second)
    expect(await isValid(sidecar, access_token)).toBe(true)
    await sidecar.clock.leap(second)
    expect(await isValid(sidecar, access_token)).toBe(false)
  })

  it('C7 both lifetimes are configurable, and expires_in is the configured one', async () => {
    const other = await start({ access_lifetime: '90s', refresh_lifetime: 300 })
    const { access_token, refresh_token, expires_in } = await other.grant()
    expect(expires_in).toBe(90)
    await other.clock.leap(89 * second)
    expect(await isValid(other, access_token)).toBe(true)
    await other.clock.leap(second)
    expect(await isValid(other, access_token)).toBe(false)
    await other.clock.leap(209 * second)
    expect((await other.refresh(refresh_token)).expires_in).toBe(90)
    await other.clock.leap(second)
    expect(await canRefresh(other, refresh_token)).toBe(false)
  })

  it('C7 H70 a jump of the wall clock neither ends nor prolongs a token', async () => {
    const { access_token, refresh_token } = await sidecar.grant()
    sidecar.clock.jumpWall(10 * year)
    expect(await isValid(sidecar, access_token)).toBe(true)
    expect(await canRefresh(sidecar, refresh_token)).toBe(true)
    sidecar.clock.jumpWall(-20 * year)
    expect(await isValid(sidecar, access_token)).toBe(true)
    await sidecar.clock.leap(hour)
    expect(await isValid(sidecar, access_token)).toBe(false)
    await sidecar.clock.leap(week - hour)
    expect(await canRefresh(sidecar, refresh_token)).toBe(false)
  })
})
