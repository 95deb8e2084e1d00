import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createSidecar } from '../../src/compose/sidecar.ts'
import { loadConfig } from '../../src/config/load.ts'
import { openLogOn } from '../../src/record/log.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { passUntil, stillClock } from '../support/clock.ts'
import { makeNames } from '../support/passwords.ts'
import { unusedPort } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'

const NO_START = 'the next start will fail, because it cannot use this file'

it('a reload does not warn of the password file of the page where no listener serves it', async () => {
  const sidecar = await startSidecar({ config: { admin: { address: 'off', password_file: '/nowhere' } } })
  await sidecar.reload({ realm: 'another' })
  expect(sidecar.logLines().join('\n')).not.toContain(NO_START)
})

it('a reload warns of a certificate that waits for the restart and cannot be used', async () => {
  const sidecar = await startSidecar()
  const [cert, key] = ['cert', 'key'].map((name) => join(sidecar.directory, name))
  for (const file of [cert, key]) writeFileSync(String(file), 'no certificate\n')
  const changes = await sidecar.reload({ listen: { tls: { cert, key } } })
  expect(changes).toMatchObject({ restart: [expect.stringContaining('listen.tls')] })
  const told = sidecar
    .logLines()
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === NO_START)
  expect(told).toEqual([
    expect.objectContaining({ key: 'listen.tls', reason: expect.stringContaining(String(cert)) }),
  ])
})

/** A hash that takes 64 MiB. */
const HEAVY = `$argon2id$v=19$m=65536,t=1,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}\n`

it('a reload judges a password file, also that of the page, by the listen.memory that it puts into effect', async () => {
  const sidecar = await startSidecar({ config: { listen: { memory: '40MiB' } } })
  const file = join(sidecar.directory, 'heavy')
  writeFileSync(file, HEAVY)
  const heavy = { password: { file }, admin: { password_file: file } }
  await expect(sidecar.reload({ password: { file } })).rejects.toThrow('clients may hold 40 MiB')
  await sidecar.reload({ ...heavy, listen: { memory: '200MiB' } })
  await sidecar.reload({ listen: { memory: '200MiB' } })
  for (const part of [{ password: { file } }, { admin: { password_file: file } }])
    await expect(sidecar.reload(part)).rejects.toThrow('clients may hold 40 MiB')
})

it('a listener that opens after a reload logs the device of that reload', async () => {
  const directory = temporaryDirectory()
  const file = join(directory, 'password')
  writeFileSync(file, 'the password\n')
  const configOf = (device: string) =>
    loadConfig({
      object: {
        listen: { address: '127.0.0.1:0', tls: 'off' },
        admin: { address: 'off' },
        upstream: { url: `http://${device}` },
        password: { file },
        state_dir: join(directory, 'state'),
      },
    })
  const clock = stillClock()
  let logged = ''
  const log = openLogOn('info', { write: (line) => (logged += line) })
  const sidecar = await createSidecar(configOf('former'), { clock, ...log })
  closeLater(() => passUntil(clock, sidecar.stop(0)))
  await sidecar.reload(() => configOf('later'))
  await sidecar.start()
  expect(logged).toMatch(/"upstream":"http:\/\/later".*"msg":"listening"/)
})

it('H76 a reload that is refused, by whichever file, closes what it opened and changes nothing', async () => {
  const clock = stillClock()
  const sidecar = await startSidecar({ clock, transport: 'tls' })
  const token = await sidecar.token()
  const file = join(sidecar.directory, 'other')
  writeFileSync(file, 'another password\n')
  const routes = { '/cam/': { url: 'http://127.0.0.1', health: { path: '/' } } }
  const whole = { realm: 'other', password: { file }, admin: { password_file: file }, upstream: { routes } }
  const state = async () => {
    const [admitted, refused] = [await sidecar.request({ token }), await sidecar.request()]
    return [clock.pending, admitted.status, refused.header('www-authenticate')]
  }
  const before = await state()
  const nowhere = { file: '/nowhere' }
  for (const fault of [
    { upstream: { headers: { 'X-Key': nowhere } } },
    { password: nowhere },
    { admin: { password_file: '/nowhere' } },
    { upstream: { routes: { ...routes, '/tls/': { url: 'https://127.0.0.1', tls: { ca: '/nowhere' } } } } },
    { listen: { tls: { cert: file, key: file } } },
  ]) {
    const refused = [sidecar.reload({ ...whole, ...fault }), sidecar.reload({ ...whole, ...fault })]
    for (const each of refused) await expect(each).rejects.toThrow(/nowhere|certificate/)
    expect(await state()).toEqual(before)
  }
})

it('C17 a limit by name waits for the restart with the names: until then, it does not count all clients together', async () => {
  const sidecar = await startSidecar()
  const { config } = makeNames({ admin: undefined })
  const changes = await sidecar.reload({
    password: undefined,
    ...config,
    limits: { api: { requests: 1, per: 'name' }, oauth: { per: 'name' } },
  })
  expect(changes).toEqual({
    live: ['limits.api.requests'],
    restart: ['password', 'passwords', 'limits.api.per', 'limits.oauth.per'],
  })
  const statuses = ['127.0.0.1', '127.0.0.2'].map(async (from) => {
    const token = String((await sidecar.grant()).access_token)
    return (await sidecar.request({ token, from })).status
  })
  expect(await Promise.all(statuses)).toEqual([200, 200])
})

it('H194 a reload that brings a second name with the same password back is logged at the next login', async () => {
  const directory = temporaryDirectory()
  const passwords = ['admin', 'monitor'].map((name) => ({ name, file: join(directory, name) }))
  for (const { file } of passwords) writeFileSync(file, 'the password\n')
  const sidecar = await startSidecar({ config: { password: undefined, passwords } })
  const logIn = async () =>
    (await sidecar.postToken({ grant_type: 'password', password: 'the password' })).status
  const logged = () =>
    sidecar.logLines().filter((line) => line.includes('several names have the same password'))
  expect([await logIn(), await logIn(), logged().length]).toEqual([400, 400, 1])
  await sidecar.reload({ passwords: passwords.slice(0, 1) })
  expect([await logIn(), logged().length]).toEqual([200, 1])
  await sidecar.reload({})
  expect([await logIn(), await logIn(), logged().length]).toEqual([400, 400, 2])
})

it('a health check begins with the service that it belongs to: a refused reload sends none, and says nothing about the device', async () => {
  const sidecar = await startSidecar({ config: { upstream: { health: { path: '/h' } } } })
  await expect.poll(() => sidecar.metric('postern_upstream_up')).toBe(1)
  const upstream = {
    url: `http://127.0.0.1:${await unusedPort()}`,
    routes: { '/cam/': { url: 'https://127.0.0.1', tls: { ca: '/nowhere' } } },
  }
  await expect(sidecar.reload({ upstream })).rejects.toThrow('/nowhere')
  expect(sidecar.logLines().join('\n')).not.toContain('the device is down')
  expect(await sidecar.metric('postern_upstream_up')).toBe(1)
})

it.each([
  ['info', 'fatal', 0],
  ['fatal', 'info', 1],
])('a reload of log.level from %s to %s is in effect for upstream.routes, too', async (from, to, lines) => {
  const upstream = { routes: { '/cam/': { url: `http://127.0.0.1:${await unusedPort()}` } } }
  const sidecar = await startSidecar({ config: { upstream, public_paths: ['/cam/'], log: { level: from } } })
  await sidecar.reload({ log: { level: to } })
  for (let i = 0; i < 3; i += 1) expect((await sidecar.request({ path: '/cam/' })).status).toBe(500)
  expect(sidecar.logLines().filter((line) => line.includes('"route":"/cam/"'))).toHaveLength(lines)
})
