import { beforeAll, expect, it } from 'vitest'
import { stillClock } from '../support/clock.ts'
import type { Response } from '../support/message.ts'
import { makeNames, type Names, OF_MONITOR, passwordOf } from '../support/passwords.ts'
import { explained } from '../support/records.ts'
import { PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'

const NAMES = { admin: undefined, monitor: OF_MONITOR }

/** A login with a username, and the password of a name. */
function logIn(sidecar: TestSidecar, username: string, name: string): Promise<Response> {
  return sidecar.postToken({ grant_type: 'password', username, password: passwordOf(name) })
}

/** The name that the tokens of a login belong to; the error code if there are none. */
async function nameOf(sidecar: TestSidecar, username: string, name: string): Promise<unknown> {
  const response = await logIn(sidecar, username, name)
  const { error, access_token: token } = response.json()
  if (response.status !== 200) return error
  const path = '/firmware'
  return (await sidecar.request({ path, token: String(token) })).status === 200 ? 'admin' : 'monitor'
}

describeProtocols('H308 A login with a username', (transport) => {
  let sidecar: TestSidecar
  beforeAll(async () => {
    sidecar = await startSidecar({ transport, config: makeNames(NAMES).config })
  })

  it.each([
    ['monitor', 'monitor', 'monitor'],
    ['admin', 'admin', 'admin'],
    ['monitor', 'admin', 'invalid_grant'],
    ['admin', 'monitor', 'invalid_grant'],
  ])('H308 username=%s with the password of %s: %s', async (username, name, expected) => {
    expect(await nameOf(sidecar, username, name)).toBe(expected)
  })

  it.each([
    '',
    'nobody',
    'Monitor',
    'monitor ',
    'monitor.0123456789abcdef',
    '__proto__',
    'mönitor',
    'monitor\u200b',
  ])('H308 username=%s is no name, and is ignored', async (username) => {
    expect(await nameOf(sidecar, username, 'admin')).toBe('admin')
    expect(await nameOf(sidecar, username, 'monitor')).toBe('monitor')
  })
})

it('H308 the client cannot tell the password of another name from a wrong one; the log and explain can', async () => {
  const sidecar = await startSidecar({ config: makeNames(NAMES).config })
  const wrong = await logIn(sidecar, 'monitor', 'nobody')
  const other = await logIn(sidecar, 'monitor', 'admin')
  expect([other.status, other.text]).toEqual([wrong.status, wrong.text])
  const refusals = sidecar.logLines().flatMap((line) => JSON.parse(line).refusal ?? [])
  expect(refusals).toEqual(['invalid-grant', 'invalid-grant: other-name'])
  expect(sidecar.logLines().join('\n')).not.toContain(passwordOf('admin'))
  expect((await explained(sidecar, '/oauth/token')).Decision).toMatch(
    /The password is that of another name than the username of the login/,
  )
  expect(await sidecar.metric('postern_password_failures_total')).toBe(2)
  expect(await sidecar.metric('postern_refusals_total', { reason: 'invalid_grant' })).toBe(2)
})

it('H308 H181 the password of another name counts as a wrong one, and does not end the wait of its client', async () => {
  const slow = { limits: { wrong_passwords: 'slow' } }
  const bounds = { listen: { bodyTimeout: 100 } }
  // The clock stands still, so a login that has to wait is refused at once.
  const sidecar = await startSidecar({
    config: { ...makeNames(NAMES).config, ...slow },
    bounds,
    clock: stillClock(),
  })
  const statuses: number[] = []
  for (let i = 0; i < 6; i += 1) statuses.push((await logIn(sidecar, 'monitor', 'admin')).status)
  expect(statuses).toEqual([400, 400, 400, 400, 429, 429])
})

it('H308 two names with the same password still log nobody in, also with the username of one', async () => {
  const names: Names = makeNames(NAMES)
  names.set('monitor', passwordOf('admin'))
  const sidecar = await startSidecar({ config: names.config })
  expect(await nameOf(sidecar, 'admin', 'admin')).toBe('invalid_grant')
})

it('H308 without passwords there are no names, and every username is ignored', async () => {
  const sidecar = await startSidecar()
  for (const username of ['admin', 'monitor', '']) {
    const form = { grant_type: 'password', username, password: PASSWORD }
    expect((await sidecar.postToken(form)).status, username).toBe(200)
  }
})
