import { join } from 'node:path'
import { expect, it } from 'vitest'
import { logInAs, makeNames, passwordOf } from '../support/passwords.ts'
import { PASSWORD, startSidecar } from '../support/sidecar.ts'
import { prepareSite, replaceFile, type Serving, type Site } from './serve.ts'

const OTHER = 'another password'

/** A sidecar whose password is in a file, and the configuration with another one. */
async function start() {
  const site = await prepareSite()
  const other = join(site.directory, 'other-password')
  return { site, other, sidecar: await site.serveHere() }
}

async function reload(site: Site, sidecar: Serving, config: Parameters<Site['configure']>[0]): Promise<void> {
  const known = sidecar.logged('configuration reloaded').length
  site.configure(config)
  await expect.poll(() => sidecar.logged('configuration reloaded').length).toBe(known + 1)
}

it('C8 H75 a reload with another file has its password in effect, and ends the tokens of the one before', async () => {
  const { site, other, sidecar } = await start()
  const { access_token, refresh_token } = await sidecar.grant()
  replaceFile(other, `${OTHER}\n`)
  await reload(site, sidecar, { password: { file: other } })
  expect(await sidecar.use(access_token)).toBe(401)
  expect((await sidecar.refresh(refresh_token)).status).toBe(400)
  expect((await sidecar.login(PASSWORD)).status).toBe(400)
  const response = await sidecar.login(OTHER)
  expect(response.status).toBe(200)
  expect(sidecar.logged('these keys take effect after a restart')).toEqual([])
  const [line] = sidecar.logged('configuration reloaded')
  expect(line?.changed).toEqual(['password.file'])
  // The token of the new password outlives a restart, and the former file is watched no more.
  await sidecar.stop()
  const again = await site.serveHere()
  expect(await again.use(String(response.json().access_token))).toBe(200)
})

it('C8 a reload with the same password in another file ends no token, and that file is watched', async () => {
  const { site, other, sidecar } = await start()
  const { access_token } = await sidecar.grant()
  replaceFile(other, `${PASSWORD}\n`)
  await reload(site, sidecar, { password: { file: other } })
  expect(await sidecar.use(access_token)).toBe(200)
  replaceFile(site.passwordFile, `${OTHER}\n`)
  replaceFile(other, `${OTHER} again\n`)
  await expect.poll(() => sidecar.use(access_token)).toBe(401)
  expect((await sidecar.login(`${OTHER} again`)).status).toBe(200)
  expect((await sidecar.login(OTHER)).status).toBe(400)
})

it('H76 a reload whose password file cannot be used is refused, and changes nothing', async () => {
  const { site, other, sidecar } = await start()
  const { access_token } = await sidecar.grant()
  site.configure({ password: { file: other }, realm: 'another realm' })
  const line = await sidecar.waitForLog('configuration not reloaded: the previous one stays in effect')
  expect(String(line.problems)).toContain(other)
  expect(await sidecar.use(access_token)).toBe(200)
  expect((await sidecar.login(PASSWORD)).status).toBe(200)
  expect((await sidecar.request({})).header('www-authenticate')).not.toContain('another realm')
})

it('C8 H194 a reload takes another file and a new name of passwords into effect, and ends no other tokens', async () => {
  const names = makeNames({ admin: undefined, monitor: undefined, backup: undefined })
  const [admin, monitor, backup] = names.config.passwords
  const sidecar = await startSidecar({ config: { password: undefined, passwords: [admin, monitor] } })
  const tokens = [await logInAs(sidecar, 'admin'), await logInAs(sidecar, 'monitor')]
  const elsewhere = join(sidecar.directory, 'monitor')
  replaceFile(elsewhere, `${OTHER}\n`)
  await sidecar.reload({ passwords: [admin, { ...monitor, file: elsewhere }, backup] })
  const statuses = await Promise.all(
    tokens.map(async ({ access_token: token }) => (await sidecar.request({ token })).status),
  )
  expect(statuses).toEqual([200, 401])
  const login = async (password: string): Promise<number> =>
    (await sidecar.postToken({ grant_type: 'password', password })).status
  expect(await login(passwordOf('monitor'))).toBe(400)
  expect(await login(OTHER)).toBe(200)
  expect(await login(passwordOf('backup'))).toBe(200)
})
