import { once } from 'node:events'
import { expect, it } from 'vitest'
import { FROM_PAGE, logIn, startWithLogin } from '../browser/browsing.ts'
import { startRedis } from '../support/redis.ts'
import { needs } from '../support/tools.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'
import { passing, passWhile } from './passing.ts'

it('H275 a logout while the shared store does not answer ends the session and what it has open at once, and its login when the store answers', async () => {
  needs('redis-server')
  const redis = await startRedis()
  const config = { tokens: { store: `valkey://${redis.at}` } }
  const sidecar = await startWithLogin({ config, bounds: { store: { timeout: 2_000 } } })
  acceptWebSockets(sidecar.device)
  const cookie = await logIn(sidecar)
  const headers = { Cookie: cookie, 'Sec-Fetch-Mode': 'websocket', 'Sec-Fetch-Site': 'same-origin' }
  const { socket } = await openWebSocket(sidecar.url, { path: '/ws', headers })
  const closed = once(socket, 'close')
  const logins = () => redis.command('ZCOUNT', '{postern}:grants', '-inf', '(+inf')
  expect(await logins()).toBe('1')
  redis.freeze()
  const fields = ['Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Site', 'same-origin', 'Cookie', cookie]
  const logout = sidecar.request({ method: 'POST', path: '/oauth/logout', fields })
  const out = await passWhile([sidecar], logout)
  expect([out.status, ...out.values('set-cookie')]).toEqual([200, expect.stringContaining('Max-Age=0')])
  await closed
  expect((await sidecar.request({ fields: [...FROM_PAGE, 'Cookie', cookie] })).status).toBe(401)
  redis.thaw()
  await expect.poll(passing([sidecar], logins)).toBe('0')
  await expect
    .poll(passing([sidecar], () => sidecar.metric('postern_tokens_revoked_total', { reason: 'client' })))
    .toBe(1)
})
