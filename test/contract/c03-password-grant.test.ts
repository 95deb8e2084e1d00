import { PassThrough, Readable } from 'node:stream'
import { beforeAll, describe, expect, it } from 'vitest'
import { hashPasswordCommand } from '../../src/commands/hash-password.ts'
import { stillClock } from '../support/clock.ts'
import { expectError } from '../support/expectations.ts'
import type { Response } from '../support/message.ts'
import { PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'

const grant = { grant_type: 'password', password: PASSWORD }

function expectTokens(response: Response): void {
  expect(response.status, response.text).toBe(200)
  expect(response.header('Content-Type')).toBe('application/json;charset=UTF-8')
  expect(response.header('Cache-Control')).toBe('no-store')
  expect(response.header('Pragma')).toBe('no-cache')
  const body = response.json()
  expect(body).toEqual({
    expires_in: 3600,
    token_type: 'Bearer',
    // 256 bits are 43 characters of base64url.
    refresh_token: expect.stringMatching(/^[\w-]{43,}$/),
    access_token: expect.stringMatching(/^[\w-]{43,}$/),
  })
  expect(body.access_token).not.toBe(body.refresh_token)
}

describeProtocols('C3 C4 The password grant', (transport) => {
  let sidecar: TestSidecar
  beforeAll(async () => {
    sidecar = await startSidecar({ transport })
  })

  it('C3 the password alone is enough', async () => {
    expectTokens(await sidecar.postToken(grant))
  })

  it('C3 the password in the decomposed form of Unicode is the same one, as macOS types it', async () => {
    const password = PASSWORD.normalize('NFD')
    expect(password).not.toBe(PASSWORD)
    expectTokens(await sidecar.postToken({ ...grant, password }))
  })

  it('C3 the parameters that ordinary OAuth clients send beside it are ignored, and unknown ones', async () => {
    const all = { username: 'ä', client_id: 'app', client_secret: '%&=', scope: '*' }
    const unknown = { audience: 'x', resource: 'https://x/', refresh_token: 'unknown' }
    for (const extra of [{ username: '', scope: '' }, all, unknown])
      expectTokens(await sidecar.postToken({ ...extra, ...grant }))
  })

  it('C3 an Authorization header is ignored', async () => {
    for (const authorization of [`Basic ${btoa('app:secret')}`, 'Basic !!!', 'Bearer nonsense'])
      expectTokens(await sidecar.postToken(grant, { fields: ['Authorization', authorization] }))
  })

  it('C3 the right password in another parameter or in Authorization is not read', async () => {
    const response = await sidecar.postToken(
      { grant_type: 'password', password: 'wrong', username: PASSWORD, client_secret: PASSWORD },
      { fields: ['Authorization', `Basic ${Buffer.from(`app:${PASSWORD}`).toString('base64')}`] },
    )
    expect([response.status, response.json().error]).toEqual([400, 'invalid_grant'])
  })

  it('C4 the response to a password grant has exactly the four fields of the document', async () => {
    expectTokens(await sidecar.postToken(grant))
  })

  it('C4 the response to a refresh has the same four fields', async () => {
    const { refresh_token } = await sidecar.grant()
    expectTokens(await sidecar.postToken({ grant_type: 'refresh_token', refresh_token }))
  })

  it('C4 the access token admits a request to the device', async () => {
    const response = await sidecar.request({ path: '/status', token: await sidecar.token() })
    expect([response.status, response.text]).toEqual([200, 'from the device'])
  })

  it('C4 no two tokens are equal, nor begin or end alike', async () => {
    const grants = await Promise.all(Array.from({ length: 40 }, () => sidecar.grant()))
    const tokens = grants.flatMap((each) => [each.access_token, each.refresh_token])
    expect(new Set(tokens).size).toBe(80)
    // 8 characters are 48 random bits: two of 80 tokens collide once in 10^11 runs. A counter, a time or a process id
    // instead of randomness collides at once.
    expect(new Set(tokens.map((token) => token.slice(0, 8))).size).toBe(80)
    expect(new Set(tokens.map((token) => token.slice(-8))).size).toBe(80)
  })
})

describe('H356 A password of 200 characters', () => {
  const long = `${'a'.repeat(100)} ü€😀 "'\\&=%+${'0'.repeat(88)}`

  it.each([
    ['as text', async () => long],
    ['as a hash', hashOf],
  ])('H356 logs in as a whole, %s in the file', async (_how, line) => {
    expect([...long]).toHaveLength(200)
    const sidecar = await startSidecar({ password: await line(long) })
    expectTokens(await sidecar.postToken({ ...grant, password: long }))
    for (const near of [long.slice(0, -1), `${long}0`, long.toUpperCase(), `${long.slice(0, -1)}1`])
      expectError(await sidecar.postToken({ ...grant, password: near }), 400, 'invalid_grant')
  })
})

/** The line that `postern hash-password` prints. */
async function hashOf(password: string): Promise<string> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  expect(
    await hashPasswordCommand({
      stdin: Readable.from([Buffer.from(password)]),
      stdout,
      stderr,
      clock: stillClock(),
    }),
  ).toBe(0)
  return String(stdout.read()).trim()
}
