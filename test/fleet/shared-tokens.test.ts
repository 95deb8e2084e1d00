import { writeFileSync } from 'node:fs'
import { beforeEach, describe, expect, it } from 'vitest'
import { PASSWORD, type SidecarOptions, startSidecar, type TestSidecar } from '../support/sidecar.ts'

const URL = process.env.REDIS ?? 'valkey://127.0.0.1:6399'
let prefix = ''

beforeEach(() => {
  prefix = `test-${Math.random().toString(36).slice(2)}`
})

function sidecar(config: SidecarOptions['config'] = {}): Promise<TestSidecar> {
  const { tokens = {}, ...rest } = config as { tokens?: object }
  return startSidecar({ config: { ...rest, tokens: { store: URL, ...tokens }, store: { prefix } } })
}

const statusOf = async (at: TestSidecar, token: string): Promise<number> =>
  (await at.request({ token })).status

describe('sidecars that share a store', () => {
  it('H128 accept the tokens of each other, after one question each', async () => {
    const [one, two] = await Promise.all([sidecar(), sidecar()])
    const token = await one.token()
    expect(await statusOf(one, token)).toBe(200)
    expect(await statusOf(two, token)).toBe(200)
    const asked = await two.metric('postern_store_duration_seconds_count')
    for (let i = 0; i < 5; i++) expect(await statusOf(two, token)).toBe(200)
    expect(await two.metric('postern_store_duration_seconds_count')).toBeLessThanOrEqual(asked + 1)
  })

  it('H129 feel a revocation anywhere at once', async () => {
    const [one, two] = await Promise.all([
      sidecar({ oauth: { revocation_path: '/oauth/revoke' } }),
      sidecar(),
    ])
    const token = await one.token()
    expect(await statusOf(two, token)).toBe(200)
    await one.request({
      method: 'POST',
      path: '/oauth/revoke',
      body: `token=${token}`,
      fields: ['Content-Type', 'application/x-www-form-urlencoded'],
    })
    await expect.poll(() => statusOf(two, token), { timeout: 1000 }).toBe(401)
    expect(await statusOf(one, token)).toBe(401)
  })

  it.each([false, true])('C6 refresh at each other, rotating %s', async (rotate) => {
    const config = { tokens: { rotate_refresh: rotate } }
    const [one, two] = await Promise.all([sidecar(config), sidecar(config)])
    const first = await one.grant()
    const second = await two.refresh(first.refresh_token)
    expect(await statusOf(one, second.access_token)).toBe(200)
    expect(await statusOf(two, first.access_token)).toBe(200)
    expect(second.refresh_token === first.refresh_token).toBe(!rotate)
    if (rotate) expect(await one.refresh(first.refresh_token)).toEqual(second)
  })

  it('C6 revoke a grant whose spent refresh token is used again after the grace', async () => {
    const config = { tokens: { rotate_refresh: true, refresh_grace: '0s' } }
    const [one, two] = await Promise.all([sidecar(config), sidecar(config)])
    const first = await one.grant()
    const second = await two.refresh(first.refresh_token)
    expect(await statusOf(two, second.access_token)).toBe(200)
    const again = await one.postToken({ grant_type: 'refresh_token', refresh_token: first.refresh_token })
    expect(again.status).toBe(400)
    await expect.poll(() => statusOf(two, second.access_token), { timeout: 1000 }).toBe(401)
  })

  it('C8 revoke all tokens when one of them sees the password change', async () => {
    const [one, two] = await Promise.all([sidecar(), sidecar()])
    const token = await one.token()
    expect(await statusOf(two, token)).toBe(200)
    writeFileSync(one.passwordFile, 'another password\n')
    await expect.poll(() => statusOf(one, token)).toBe(401)
    await expect.poll(() => statusOf(two, token), { timeout: 1000 }).toBe(401)
    // The other still has the old password: it must issue nothing for it.
    const old = await two.postToken({ grant_type: 'password', password: PASSWORD })
    expect(old.status).toBe(400)
    writeFileSync(two.passwordFile, 'another password\n')
    const fresh = await one.postToken({ grant_type: 'password', password: 'another password' })
    const { access_token: accessToken } = JSON.parse(fresh.text)
    expect(await statusOf(one, accessToken)).toBe(200)
    await expect
      .poll(
        async () => (await two.postToken({ grant_type: 'password', password: 'another password' })).status,
      )
      .toBe(200)
    expect(await statusOf(two, accessToken)).toBe(200)
    expect(await statusOf(one, accessToken)).toBe(200)
  })
})
