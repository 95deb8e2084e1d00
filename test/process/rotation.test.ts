import { expect, it } from 'vitest'
import type { Response } from '../support/message.ts'
import { startSidecar } from '../support/sidecar.ts'
import { prepareSite, tokensOf } from './serve.ts'

const outcome = (response: Response): unknown => [response.status, response.json().error]
const REFUSED = [400, 'invalid_grant']

it('C6 by default a refresh returns the same refresh token, also after a crash, and earlier access tokens stay valid', async () => {
  const site = await prepareSite()
  const first = await site.serve()
  const granted = await first.grant()
  const refreshed = tokensOf(await first.refresh(granted.refresh_token))
  expect(refreshed).toMatchObject({ refresh_token: granted.refresh_token, expires_in: 3600 })
  const [{ expiresAt = 0 } = {}] = (await first.status()).grants
  await first.kill()
  const second = await site.serveHere()
  const again = tokensOf(await second.refresh(granted.refresh_token))
  expect(again.refresh_token).toBe(granted.refresh_token)
  const access = [granted, refreshed, again].map(({ access_token }) => access_token)
  expect(new Set(access).size).toBe(3)
  expect(await Promise.all(access.map((token) => second.use(token)))).toEqual([200, 200, 200])
  // The expiry is still that of the password grant: no refresh prolongs it.
  const [{ expiresAt: later = 0 } = {}] = (await second.status()).grants
  expect(Math.abs(later - expiresAt)).toBeLessThan(1000)
})

it('C6 two refreshes in the same millisecond get the same new pair, on two connections and on one', async () => {
  const site = await prepareSite({ config: { tokens: { rotate_refresh: true, refresh_grace: '10m' } } })
  const sidecar = await site.serveHere()
  const { refresh_token } = await sidecar.grant()
  const responses = await Promise.all(Array.from({ length: 8 }, () => sidecar.refresh(refresh_token)))
  const pairs = responses.map((response) => tokensOf(response))
  const [pair] = pairs
  expect(pair?.refresh_token).not.toBe(refresh_token)
  for (const each of pairs) expect(each).toEqual(pair)

  // Both requests are in one TCP segment, so nothing can run between them.
  const form = `grant_type=refresh_token&refresh_token=${pair?.refresh_token}`
  const connection = await sidecar.connect()
  const request = {
    path: '/oauth/token',
    body: form,
    fields: ['Content-Type', 'application/x-www-form-urlencoded'],
  }
  const [one, other] = [connection.start(request), connection.start(request)]
  const next = tokensOf(await one.response)
  expect(tokensOf(await other.response)).toEqual(next)
  expect(next.refresh_token).not.toBe(pair?.refresh_token)
  expect((await sidecar.status()).tokens).toEqual({ access: 3, refresh: 1 })
})

it('C6 a client that lost the response with its connection gets the same tokens when it retries', async () => {
  const site = await prepareSite({ config: { tokens: { rotate_refresh: true, refresh_grace: '10m' } } })
  const sidecar = await site.serveHere()
  const { refresh_token } = await sidecar.grant()
  const connection = await sidecar.connect()
  const lost = connection.start({
    path: '/oauth/token',
    body: `grant_type=refresh_token&refresh_token=${refresh_token}`,
    fields: ['Content-Type', 'application/x-www-form-urlencoded'],
  })
  await lost.head // The sidecar has spent the token; the client loses the connection before it reads the body.
  connection.close()
  const response = tokensOf(await sidecar.refresh(refresh_token))
  expect(tokensOf(await sidecar.refresh(refresh_token))).toEqual(response)
  expect((await sidecar.status()).tokens).toEqual({ access: 2, refresh: 1 })
  expect(await sidecar.use(response.access_token)).toBe(200)
  expect((await sidecar.refresh(response.refresh_token)).status).toBe(200)
})

it('C6 a spent refresh token used after the grace revokes the whole grant, and only that one', async () => {
  const sidecar = await startSidecar({ config: { tokens: { rotate_refresh: true } } })
  const refresh = (refresh_token: string) =>
    sidecar.postToken({ grant_type: 'refresh_token', refresh_token }).then(outcome)
  const use = async (token: string) => (await sidecar.request({ token })).status
  const [stolen, other] = await Promise.all([sidecar.grant(), sidecar.grant()])
  const next = await sidecar.refresh(stolen.refresh_token)
  await sidecar.clock.advance(9_999)
  expect(await sidecar.refresh(stolen.refresh_token)).toEqual(next)
  await sidecar.clock.advance(1)
  expect(await refresh(stolen.refresh_token)).toEqual(REFUSED)
  expect(await refresh(next.refresh_token)).toEqual(REFUSED)
  expect(await use(stolen.access_token)).toBe(401)
  expect(await use(next.access_token)).toBe(401)
  expect(await use(other.access_token)).toBe(200)
  expect(await sidecar.metric('postern_tokens_revoked_total', { reason: 'refresh_token_reuse' })).toBe(1)
  const lines = sidecar.logLines().map((line) => JSON.parse(line))
  expect(lines).toContainEqual(
    expect.objectContaining({ msg: 'tokens revoked', reason: 'refresh_token_reuse' }),
  )
})

it('C6 a refresh whose response was lost in a crash can be retried within the grace, and reuse after it revokes the grant', async () => {
  const site = await prepareSite({ config: { tokens: { rotate_refresh: true, refresh_grace: '1h' } } })
  const first = await site.serve()
  const { refresh_token } = await first.grant()
  const lost = tokensOf(await first.refresh(refresh_token))
  await first.kill()

  const second = await site.serve()
  const found = tokensOf(await second.refresh(refresh_token))
  expect(await second.use(found.access_token)).toBe(200)
  expect(await second.use(lost.access_token)).toBe(200)
  // A client that did get the lost response also gets this pair: there is one live refresh token.
  expect(tokensOf(await second.refresh(lost.refresh_token))).toEqual(found)
  expect((await second.status()).tokens.refresh).toBe(1)
  await second.kill()

  site.configure({ tokens: { refresh_grace: '0s' } })
  const third = await site.serveHere()
  expect(outcome(await third.refresh(refresh_token))).toEqual(REFUSED)
  expect(outcome(await third.refresh(found.refresh_token))).toEqual(REFUSED)
  expect(await third.use(found.access_token)).toBe(401)
  expect(await third.metric('postern_tokens_revoked_total', 'reason="refresh_token_reuse"')).toBe(1)
})
