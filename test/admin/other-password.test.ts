import { join } from 'node:path'
import { expect, it } from 'vitest'
import { replaceFile } from '../process/serve.ts'
import { send } from '../support/client.ts'
import { startSidecar } from '../support/sidecar.ts'

it('H152 a reload with another admin.password_file has its password in effect', async () => {
  const sidecar = await startSidecar()
  const [one, two] = ['one', 'two'].map((name) => join(sidecar.directory, name))
  for (const file of [one, two]) replaceFile(String(file), `the password in ${file}\n`)
  const page = await startSidecar({ config: { admin: { password_file: one } } })
  let cookie = ''
  const logIn = async (file: string | undefined): Promise<number> => {
    const response = await send({
      transport: 'http1',
      url: page.adminUrl,
      method: 'POST',
      path: '/page/login',
      fields: ['Content-Type', 'application/x-www-form-urlencoded', 'Origin', page.adminUrl],
      body: new URLSearchParams({ password: `the password in ${file}` }).toString(),
    })
    cookie ||= response.values('set-cookie')[0]?.split(';', 1)[0] ?? ''
    return response.status
  }
  const open = async () =>
    (await send({ transport: 'http1', url: page.adminUrl, fields: ['Cookie', cookie] })).status
  expect([await logIn(one), await open()]).toEqual([303, 200])
  const changes = await page.reload({ admin: { password_file: two } })
  expect(changes).toEqual({ live: ['admin.password_file'], restart: [] })
  // The session of the earlier password has ended.
  expect(await open()).toBe(401)
  expect(await logIn(two)).toBe(303)
  expect(await logIn(one)).not.toBe(303)
  expect(page.logLines().join('\n')).toContain('the password of the live page has changed')
})

it('H152 a reload that sets admin.password_file asks for it from then on, and one that removes it ends the sessions', async () => {
  const page = await startSidecar()
  const file = join(page.directory, 'page')
  replaceFile(file, 'the password\n')
  const status = async (cookie: string): Promise<number> =>
    (await send({ transport: 'http1', url: page.adminUrl, fields: ['Cookie', cookie] })).status
  const logIn = () =>
    send({
      transport: 'http1',
      url: page.adminUrl,
      method: 'POST',
      path: '/page/login',
      fields: ['Content-Type', 'application/x-www-form-urlencoded', 'Origin', page.adminUrl],
      body: 'password=the+password',
    })
  expect([await status(''), (await logIn()).status]).toEqual([200, 404])
  const events = await fetch(`${page.adminUrl}/page/events`)
  const set = await page.reload({ admin: { password_file: file } })
  expect(set).toEqual({ live: ['admin.password_file'], restart: [] })
  expect(await status('')).toBe(401)
  const loggedIn = await logIn()
  const cookie = loggedIn.values('set-cookie')[0]?.split(';', 1)[0] ?? ''
  expect([loggedIn.status, await status(cookie)]).toEqual([303, 200])
  // The stream of a viewer without a session ends within a second.
  await page.clock.advance(1_000)
  expect(await events.text()).toContain('event')

  const removed = await page.reload({})
  expect(removed).toEqual({ live: ['admin.password_file'], restart: [] })
  expect(await status('')).toBe(200)
  await page.reload({ admin: { password_file: file } })
  expect(await status(cookie)).toBe(401)
})

it('C26 a reload with another listen.memory has that limit in effect', async () => {
  const sidecar = await startSidecar({ config: { listen: { memory: '64MiB' } } })
  expect(await sidecar.metric('postern_memory_limit_bytes')).toBe(64 * 1024 ** 2)
  expect(await sidecar.reload({ listen: { memory: '40MiB' } })).toEqual({
    live: ['listen.memory'],
    restart: [],
  })
  expect(await sidecar.metric('postern_memory_limit_bytes')).toBe(40 * 1024 ** 2)
  expect(sidecar.logLines().at(-1)).toContain('clients may hold 40 MiB')
})
