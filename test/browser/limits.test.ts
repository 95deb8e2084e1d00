import { expect, it } from 'vitest'
import { limitsOf } from '../support/expectations.ts'
import { makeNames, passwordOf } from '../support/passwords.ts'
import { explained } from '../support/records.ts'
import { startRedis } from '../support/redis.ts'
import type { TestSidecar, YamlPart } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { describeProtocols } from '../support/transports.ts'
import { refusedWebSocket } from '../support/websocket.ts'
import { FROM_PAGE, logIn, startWithLogin, submitLogin } from './browsing.ts'

const limits = (per: string, requests = 3): YamlPart => ({
  limits: { api: { requests, window: '1h', per } },
  browser: { login: 'on' },
})

const statusesOf = async (
  sidecar: TestSidecar,
  cookie: string,
  count: number,
): Promise<readonly number[]> => {
  const statuses: number[] = []
  for (let i = 0; i < count; i += 1)
    statuses.push((await sidecar.request({ path: '/x', fields: ['Cookie', cookie, ...FROM_PAGE] })).status)
  return statuses
}

describeProtocols('The limits of a session', (transport) => {
  it('H216 a request with a session counts in the window of the whole device, too', async () => {
    const sidecar = await startWithLogin({ transport, config: limits('device') })
    const [token, cookie] = [await sidecar.token(), await logIn(sidecar)]
    expect(limitsOf(await sidecar.request({ token }))).toMatchObject({ limit: 3, remaining: 2 })
    const second = await sidecar.request({ fields: ['Cookie', cookie, ...FROM_PAGE] })
    expect(limitsOf(second)).toMatchObject({ limit: 3, remaining: 1 })
    expect(await statusesOf(sidecar, cookie, 1)).toEqual([200])
    // Of each second only the first requests are remembered.
    await sidecar.clock.advance(1_000)
    expect(await statusesOf(sidecar, cookie, 2)).toEqual([429, 429])
    expect((await sidecar.request({ token })).status).toBe(429)
    expect((await explained(sidecar, '/x')).Window).toMatch(
      /^That of all clients together, for the endpoint type api\. All 3 requests were used\./,
    )
  })

  it('H216 one that its own window refuses takes nothing of the other', async () => {
    const sidecar = await startWithLogin({ transport, config: limits('device', 602) })
    const [token, cookie] = [await sidecar.token(), await logIn(sidecar)]
    expect(await statusesOf(sidecar, cookie, 600)).toEqual(Array(600).fill(200))
    expect(await statusesOf(sidecar, cookie, 3)).toEqual([429, 429, 429])
    expect(limitsOf(await sidecar.request({ token }))).toMatchObject({ limit: 602, remaining: 1 })
  })

  it('H216 a session counts in the window of its name, and not in that of another', async () => {
    const names = makeNames({ admin: undefined, monitor: undefined })
    const sidecar = await startWithLogin({ transport, config: { ...names.config, ...limits('name') } })
    const cookieOf = async (name: string): Promise<string> => {
      const [set = ''] = (await submitLogin(sidecar, { password: passwordOf(name) })).values('set-cookie')
      return set.split(';', 1)[0] ?? ''
    }
    const [one, two, other] = [await cookieOf('admin'), await cookieOf('admin'), await cookieOf('monitor')]
    expect(await statusesOf(sidecar, one, 2)).toEqual([200, 200])
    expect(await statusesOf(sidecar, two, 2)).toEqual([200, 429])
    expect(await statusesOf(sidecar, other, 1)).toEqual([200])
  })

  it.each(['client', 'grant'])('H216 it has a window of its own only, per %s', async (per) => {
    const sidecar = await startWithLogin({ transport, config: limits(per) })
    const cookie = await logIn(sidecar)
    expect(await statusesOf(sidecar, cookie, 5)).toEqual(Array(5).fill(200))
  })
})

it('H216 so does a WebSocket', async () => {
  const sidecar = await startWithLogin({ config: limits('device') })
  const cookie = await logIn(sidecar)
  expect(await statusesOf(sidecar, cookie, 3)).toEqual([200, 200, 200])
  const headers = { Cookie: cookie, 'Sec-Fetch-Mode': 'websocket', 'Sec-Fetch-Site': 'same-origin' }
  expect((await refusedWebSocket(sidecar.url, { headers })).status).toBe(429)
})

it('H216 in a fleet that shares its windows, too', async () => {
  needs('redis-server')
  const { at } = await startRedis()
  const { limits: own, browser } = limits('device') as { limits: object; browser: object }
  const config = { browser, limits: { ...own, store: 'shared' }, tokens: { store: `valkey://${at}` } }
  const [one, two] = await Promise.all([startWithLogin({ config }), startWithLogin({ config })])
  await expect.poll(async () => (await submitLogin(one)).status).toBe(200)
  const cookie = await logIn(one)
  expect(await statusesOf(one, cookie, 2)).toEqual([200, 200])
  expect((await two.request({ token: await two.token() })).status).toBe(200)
  expect(await statusesOf(one, cookie, 2)).toEqual([429, 429])
})
