import { expect, it } from 'vitest'
import { prepareSite } from '../process/serve.ts'
import { FROM_PAGE, logIn, NAVIGATION } from './browsing.ts'

it('H187 H188 H210 a reload switches the login on and off, which ends all sessions; an operator ends a session, and a restart all', async () => {
  const site = await prepareSite()
  const served = await site.serve()
  const page = async (): Promise<boolean> =>
    (await served.request({ fields: NAVIGATION })).text.includes('<form')
  expect(await page()).toBe(false)
  // A head that repeats on its connection is kept: the reload has to reach it.
  const kept = await served.connect()
  site.configure({ browser: { login: 'on' } })
  await expect.poll(page).toBe(true)
  let cookie = await logIn(served)
  const load = async (): Promise<number> =>
    (await kept.send({ fields: [...FROM_PAGE, 'Cookie', cookie] })).status
  expect(await load()).toBe(200)
  site.configure({ browser: { login: 'off' } })
  await expect.poll(page).toBe(false)
  expect(await load()).toBe(401)
  site.configure({ browser: { login: 'on' } })
  await expect.poll(page).toBe(true)
  expect(await load()).toBe(401)
  expect((await served.status()).grants).toEqual([])
  cookie = await logIn(served)
  expect(await load()).toBe(200)
  const { grants } = await served.status()
  expect(grants.length).toBe(1)
  await served.revoke({ grant: grants[0]?.id })
  expect(await load()).toBe(401)
  const other = await logIn(served)
  await served.stop()
  const again = await site.serve()
  expect((await again.request({ fields: [...FROM_PAGE, 'Cookie', other] })).status).toBe(401)
})
