import { expect, it } from 'vitest'
import { logInAs, makeNames } from '../support/passwords.ts'
import { prepareSite } from './serve.ts'

it.each(['tls', 'h2'] as const)('H312 H313 the log says who changed what, by %s', async (transport) => {
  const names = makeNames({ admin: undefined, monitor: undefined })
  const log = { access: 'changes' }
  const site = await prepareSite({ transport, config: { ...names.config, log } })
  const sidecar = await site.serveHere()
  const { access_token: token } = await logInAs(sidecar, 'monitor')
  expect((await sidecar.request({ path: '/do?action=read', token })).status).toBe(200)
  expect((await sidecar.request({ path: '/do?action=reboot&pin=1234', method: 'POST', token })).status).toBe(
    200,
  )
  for (const body of ['action=set', ['action', '=set']])
    expect((await sidecar.request({ path: '/form', method: 'GET', body, token })).status).toBe(200)
  await sidecar.stop()
  const lines = sidecar.logged('request')
  expect(lines).toMatchObject([
    { method: 'POST', path: '/oauth/token', name: 'monitor', status: 200 },
    { method: 'POST', path: '/do', name: 'monitor', status: 200 },
    { method: 'GET', path: '/form', name: 'monitor', status: 200 },
    { method: 'GET', path: '/form', name: 'monitor', status: 200 },
  ])
  expect(new Set(lines.map(({ grant }) => grant)).size).toBe(1)
  expect(JSON.stringify(lines)).not.toMatch(/reboot|1234/)
})

it.each(['tls', 'h2'] as const)(
  'H312 no failure of the device keeps a change out of the log, by %s',
  async (transport) => {
    const site = await prepareSite({ transport, config: { log: { access: 'changes' } } })
    const reached: string[] = []
    site.device.handle(({ url = '' }, response) => {
      reached.push(url)
      response.destroy()
    })
    const sidecar = await site.serveHere()
    const { access_token: token } = await sidecar.grant()
    for (let i = 0; i < 12; i += 1)
      expect((await sidecar.request({ path: `/reboot/${i}`, method: 'POST', token })).status).toBe(500)
    await sidecar.stop()
    expect(reached).toHaveLength(12)
    expect(sidecar.logged('request').flatMap(({ path }) => (path === '/oauth/token' ? [] : [path]))).toEqual(
      reached,
    )
  },
)
