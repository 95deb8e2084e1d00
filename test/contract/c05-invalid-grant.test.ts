import { beforeAll, expect, it } from 'vitest'
import { stillClock } from '../support/clock.ts'
import { expectError } from '../support/expectations.ts'
import { readPage } from '../support/pages.ts'
import { PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'

const week = 604_800_000

describeProtocols('C5 A refused grant', (transport) => {
  let sidecar: TestSidecar
  beforeAll(async () => {
    sidecar = await startSidecar({ transport })
  })

  it.each([
    ['another password', 'wrong'],
    ['all but the last character', PASSWORD.slice(0, -1)],
    ['one character too many', `${PASSWORD}x`],
    ['a space behind it', `${PASSWORD} `],
    ['CRLF behind it', `${PASSWORD}\r\n`],
    ['upper case', PASSWORD.toUpperCase()],
    ['a letter without its accent', PASSWORD.replace('ä', 'a')],
    ['8000 characters', 'x'.repeat(8000)],
    ['a property name of JavaScript', '__proto__'],
  ])('C5 a wrong password is 400 invalid_grant: %s', async (_name, password) => {
    expectError(await sidecar.postToken({ grant_type: 'password', password }), 400, 'invalid_grant')
  })

  it('C5 the right password is accepted after 20 wrong ones', async () => {
    const wrong = () => sidecar.postToken({ grant_type: 'password', password: 'wrong' })
    const responses = await Promise.all(Array.from({ length: 20 }, wrong))
    for (const response of responses) expectError(response, 400, 'invalid_grant')
    await sidecar.grant()
  })

  it('C5 a refresh token that is unknown or malformed is 400 invalid_grant', async () => {
    const { refresh_token } = await sidecar.grant()
    const unknown = ['x', 'ü', ' ', '__proto__', 'A'.repeat(43), 'x'.repeat(8000), `${refresh_token}A`]
    unknown.push(
      refresh_token.slice(0, -1),
      refresh_token.toLowerCase(),
      ` ${refresh_token}`,
      `${refresh_token}=`,
    )
    for (const token of unknown) {
      const response = await sidecar.postToken({ grant_type: 'refresh_token', refresh_token: token })
      expectError(response, 400, 'invalid_grant')
    }
    await sidecar.refresh(refresh_token)
  })

  it('C5 H34 no token stands in for one of the other kind or for the password, before and after a refresh', async () => {
    const first = await sidecar.grant()
    const second = await sidecar.refresh(first.refresh_token)
    for (const { access_token, refresh_token } of [first, second]) {
      expectError(await sidecar.request({ token: refresh_token }), 401, 'invalid_token')
      const swapped = { grant_type: 'refresh_token', refresh_token: access_token }
      expectError(await sidecar.postToken(swapped), 400, 'invalid_grant')
      const asPassword = { grant_type: 'password', password: refresh_token }
      expectError(await sidecar.postToken(asPassword), 400, 'invalid_grant')
      expect((await sidecar.request({ token: access_token })).status).toBe(200)
    }
  })

  it('C5 an expired refresh token is 400 invalid_grant', async () => {
    const clock = stillClock()
    const timed = await startSidecar({ transport, clock })
    const { refresh_token } = await timed.grant()
    await clock.leap(week + 1000)
    const response = await timed.postToken({ grant_type: 'refresh_token', refresh_token })
    expectError(response, 400, 'invalid_grant')
  })

  it('C5 a revoked refresh token is 400 invalid_grant', async () => {
    const clock = stillClock()
    const rotating = await startSidecar({ transport, clock, config: { tokens: { rotate_refresh: true } } })
    const first = await rotating.grant()
    const second = await rotating.refresh(first.refresh_token)
    await clock.advance(11_000)
    const form = { grant_type: 'refresh_token' }
    const reuse = await rotating.postToken({ ...form, refresh_token: first.refresh_token })
    expectError(reuse, 400, 'invalid_grant')
    const revoked = await rotating.postToken({ ...form, refresh_token: second.refresh_token })
    expectError(revoked, 400, 'invalid_grant')
  })

  it('C5 the response is the same for an unknown token, a malformed one and an access token', async () => {
    const { access_token } = await sidecar.grant()
    const responses = []
    for (const refresh_token of ['x', 'A'.repeat(43), access_token]) {
      responses.push((await sidecar.postToken({ grant_type: 'refresh_token', refresh_token })).text)
    }
    expect(new Set(responses).size).toBe(1)
  })

  it('C5 another grant type is 400 unsupported_grant_type', async () => {
    for (const grant_type of ['client_credentials', 'Password', 'password ', 'ü', '__proto__']) {
      const response = await sidecar.postToken({ grant_type, password: PASSWORD, refresh_token: 'x' })
      expectError(response, 400, 'unsupported_grant_type')
    }
  })

  it('C5 the description lists the grant types, and docs/api.md has each of them', async () => {
    const { text } = await sidecar.postToken({ grant_type: 'x' })
    const names = [...text.matchAll(/\\"([^"\\]+)\\"/g)].map(([, name]) => name)
    expect(names).toEqual(expect.arrayContaining(['password', 'refresh_token']))
    const page = readPage('docs/api.md')
    const row = page.split('\n').find((line) => line.includes('| `unsupported_grant_type` |'))
    const absent = names.filter(
      (name) => !page.includes(`grant_type=${name}`) || !row?.includes(`\`${name}\``),
    )
    expect(absent, 'docs/api.md lacks a request with these, or they are not in its error table').toEqual([])
  })

  it('C5 no byte of these requests reached the device', async () => {
    expect(sidecar.device.requests.map((request) => request.target)).toEqual(['/', '/'])
  })
})
