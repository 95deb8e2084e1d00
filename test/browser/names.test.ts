import { expect, it } from 'vitest'
import { passUntil } from '../support/clock.ts'
import { makeNames, OF_MONITOR, passwordOf } from '../support/passwords.ts'
import { FROM_PAGE, startWithLogin, submitLogin } from './browsing.ts'

it('H193 H194 the session of a browser may do what the name of its password may do, and ends with it', async () => {
  const names = makeNames({ admin: undefined, monitor: OF_MONITOR })
  const sidecar = await startWithLogin({ config: names.config })
  const cookieOf = async (name: string): Promise<string> =>
    ((await submitLogin(sidecar, { password: passwordOf(name) })).values('set-cookie')[0] ?? '').split(
      ';',
      1,
    )[0] ?? ''
  const [admin, monitor] = [await cookieOf('admin'), await cookieOf('monitor')]
  const statusOf = async (cookie: string, path: string, method = 'GET'): Promise<number> =>
    (await sidecar.request({ method, path, fields: ['Cookie', cookie, ...FROM_PAGE] })).status
  expect(await statusOf(monitor, '/status')).toBe(200)
  for (const [path, method] of [
    ['/firmware', 'GET'],
    ['/status', 'POST'],
    ['/api/sensors/../firmware', 'GET'],
  ] as const) {
    expect(await statusOf(monitor, path, method), path).toBe(400)
    expect(await statusOf(admin, path, method), path).toBe(200)
  }
  names.set('monitor', 'another password')
  await passUntil(sidecar.clock, expect.poll(() => statusOf(monitor, '/status')).toBe(401))
  expect(await statusOf(admin, '/status')).toBe(200)
})

it('H308 the login of browsers holds a username against its name, too', async () => {
  const sidecar = await startWithLogin({
    config: makeNames({ admin: undefined, monitor: OF_MONITOR }).config,
  })
  const statusOf = async (username: string, name: string): Promise<number> => {
    const body = new URLSearchParams({ username, password: passwordOf(name) }).toString()
    return (await submitLogin(sidecar, { body })).status
  }
  expect(await statusOf('monitor', 'admin')).toBe(400)
  expect(await statusOf('monitor', 'monitor')).toBe(200)
  expect(await statusOf('nobody', 'admin')).toBe(200)
})
