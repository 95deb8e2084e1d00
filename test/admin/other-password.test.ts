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
