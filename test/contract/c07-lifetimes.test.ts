import { beforeAll, expect, it } from 'vitest'
import { stillClock } from '../support/clock.ts'
import { expectError } from '../support/errors.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

const second = 1000
const hour = 3_600_000
const week = 604_800_000
const year = 31_536_000_000

async function opens(sidecar: TestSidecar, token: string): Promise<boolean> {
  const { status } = await sidecar.request({ token })
  if (status !== 200 && status !== 401) throw new Error(`status ${status}`)
  return status === 200
}

async function refreshes(sidecar: TestSidecar, refresh_token: string): Promise<boolean> {
  const answer = await sidecar.postToken({ grant_type: 'refresh_token', refresh_token })
  if (answer.status !== 200) expectError(answer, 400, 'invalid_grant')
  return answer.status === 200
}

describeTransports('C7', (transport) => {
  const start = (tokens = {}) => startSidecar({ transport, clock: stillClock(), config: { tokens } })
  // Shared: each test lives on from where the one before it left the clock, with a grant of its own.
  let sidecar: TestSidecar
  beforeAll(async () => {
    sidecar = await start()
  })

  it('C7 an access token is valid for 3599 s and not at the 3600th', async () => {
    const token = await sidecar.token()
    sidecar.clock.advance(hour - second)
    expect(await opens(sidecar, token)).toBe(true)
    sidecar.clock.advance(second - 1)
    expect(await opens(sidecar, token)).toBe(true)
    sidecar.clock.advance(1)
    expect(await opens(sidecar, token)).toBe(false)
    sidecar.clock.advance(year)
    expect(await opens(sidecar, token)).toBe(false)
  })

  it('C7 a refresh token is valid for 604,799 s and not at the 604,800th', async () => {
    const { refresh_token } = await sidecar.grant()
    sidecar.clock.advance(week - second)
    expect(await refreshes(sidecar, refresh_token)).toBe(true)
    sidecar.clock.advance(second)
    expect(await refreshes(sidecar, refresh_token)).toBe(false)
  })

  it('C7 an access token of the last refresh lives its hour, past the end of the refresh token', async () => {
    const { refresh_token } = await sidecar.grant()
    sidecar.clock.advance(week - second)
    const { access_token } = await sidecar.refresh(refresh_token)
    sidecar.clock.advance(hour - second)
    expect(await opens(sidecar, access_token)).toBe(true)
    sidecar.clock.advance(second)
    expect(await opens(sidecar, access_token)).toBe(false)
  })

  it('C7 both lifetimes are configurable, and expires_in says which', async () => {
    const other = await start({ access_lifetime: '90s', refresh_lifetime: 300 })
    const { access_token, refresh_token, expires_in } = await other.grant()
    expect(expires_in).toBe(90)
    other.clock.advance(89 * second)
    expect(await opens(other, access_token)).toBe(true)
    other.clock.advance(second)
    expect(await opens(other, access_token)).toBe(false)
    other.clock.advance(209 * second)
    expect((await other.refresh(refresh_token)).expires_in).toBe(90)
    other.clock.advance(second)
    expect(await refreshes(other, refresh_token)).toBe(false)
  })

  it('C7 setting the time of day neither ends nor prolongs a token', async () => {
    const { access_token, refresh_token } = await sidecar.grant()
    sidecar.clock.jumpWall(10 * year)
    expect(await opens(sidecar, access_token)).toBe(true)
    expect(await refreshes(sidecar, refresh_token)).toBe(true)
    sidecar.clock.jumpWall(-20 * year)
    expect(await opens(sidecar, access_token)).toBe(true)
    sidecar.clock.advance(hour)
    expect(await opens(sidecar, access_token)).toBe(false)
    sidecar.clock.advance(week - hour)
    expect(await refreshes(sidecar, refresh_token)).toBe(false)
  })
})
