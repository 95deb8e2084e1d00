import { beforeAll, expect, it } from 'vitest'
import type { Response } from '../support/message.ts'
import { PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

const grant = { grant_type: 'password', password: PASSWORD }

function expectTokens(answer: Response): void {
  expect(answer.status, answer.text).toBe(200)
  expect(answer.header('Content-Type')).toBe('application/json;charset=UTF-8')
  expect(answer.header('Cache-Control')).toBe('no-store')
  expect(answer.header('Pragma')).toBe('no-cache')
  const body = answer.json()
  expect(body).toEqual({
    expires_in: 3600,
    token_type: 'Bearer',
    // 43 characters of base64url hold the 256 bits.
    refresh_token: expect.stringMatching(/^[\w-]{43,}$/),
    access_token: expect.stringMatching(/^[\w-]{43,}$/),
  })
  expect(body.access_token).not.toBe(body.refresh_token)
}

describeTransports('C3 and C4', (transport) => {
  let sidecar: TestSidecar
  beforeAll(async () => {
    sidecar = await startSidecar({ transport })
  })

  it('C3 the password alone is enough', async () => {
    expectTokens(await sidecar.postToken(grant))
  })

  it.each([
    ['username', { username: 'admin' }],
    ['an empty username', { username: '' }],
    ['client_id', { client_id: 'app' }],
    ['client_id and client_secret', { client_id: 'app', client_secret: 'not the password' }],
    ['scope', { scope: 'read write' }],
    ['an empty scope', { scope: '' }],
    ['all of them', { username: 'ä', client_id: 'app', client_secret: '%&=', scope: '*' }],
    ['what else it does not know', { audience: 'x', resource: 'https://x/', refresh_token: 'unknown' }],
  ])('C3 accepts and ignores %s', async (_name, extra) => {
    expectTokens(await sidecar.postToken({ ...extra, ...grant }))
  })

  it.each([
    ['Basic with an id and a secret', `Basic ${btoa('app:secret')}`],
    ['Basic with an empty secret', `Basic ${btoa('app:')}`],
    ['Basic with nonsense', 'Basic !!!'],
    ['a token nobody issued', 'Bearer nonsense'],
  ])('C3 accepts and ignores an Authorization header: %s', async (_name, authorization) => {
    expectTokens(await sidecar.postToken(grant, { fields: ['Authorization', authorization] }))
  })

  it('C3 the right password elsewhere does not stand in for it', async () => {
    const answer = await sidecar.postToken(
      { grant_type: 'password', password: 'wrong', username: PASSWORD, client_secret: PASSWORD },
      { fields: ['Authorization', `Basic ${Buffer.from(`app:${PASSWORD}`).toString('base64')}`] },
    )
    expect([answer.status, answer.json().error]).toEqual([400, 'invalid_grant'])
  })

  it('C4 the answer is the token object of the document and nothing else', async () => {
    expectTokens(await sidecar.postToken(grant))
  })

  it('C4 the answer to a refresh has the same four fields', async () => {
    const { refresh_token } = await sidecar.grant()
    expectTokens(await sidecar.postToken({ grant_type: 'refresh_token', refresh_token }))
  })

  it('C4 the access token opens the device', async () => {
    const answer = await sidecar.request({ path: '/status', token: await sidecar.token() })
    expect([answer.status, answer.text]).toEqual([200, 'from the device'])
  })

  it('C4 no token ever comes twice, and no part of one recurs', async () => {
    const grants = await Promise.all(Array.from({ length: 40 }, () => sidecar.grant()))
    const tokens = grants.flatMap((each) => [each.access_token, each.refresh_token])
    expect(new Set(tokens).size).toBe(80)
    // 48 bits of chance collide among 80 once in 10^11 runs; a counter, a time or a process id does so at once.
    expect(new Set(tokens.map((token) => token.slice(0, 8))).size).toBe(80)
    expect(new Set(tokens.map((token) => token.slice(-8))).size).toBe(80)
  })
})
