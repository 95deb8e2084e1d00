import { beforeAll, expect, it } from 'vitest'
import { stillClock } from '../support/clock.ts'
import { expectError } from '../support/errors.ts'
import type { Response } from '../support/message.ts'
import { type ApiRequest, startSidecar, type TestSidecar, type Tokens } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'

const plain = 'Bearer realm="device"'
const invalid = 'Bearer realm="device", error="invalid_token"'

/** Checks a 401 against C10, C11 and C18. `presented` says whether the request had a bearer token. */
function expectUnauthorized(response: Response, presented: boolean): void {
  expectError(response, 401, 'invalid_token')
  expect(response.values('WWW-Authenticate')).toEqual([presented ? invalid : plain])
}

type Variant = readonly [name: string, authorization: (tokens: Tokens) => readonly string[]]

const accepted: readonly Variant[] = [
  ['Bearer and one space', ({ access_token }) => [`Bearer ${access_token}`]],
  ['bearer', ({ access_token }) => [`bearer ${access_token}`]],
  ['BEARER', ({ access_token }) => [`BEARER ${access_token}`]],
  ['bEaReR', ({ access_token }) => [`bEaReR ${access_token}`]],
  ['two spaces', ({ access_token }) => [`Bearer  ${access_token}`]],
  ['many spaces', ({ access_token }) => [`Bearer${' '.repeat(50)}${access_token}`]],
]

const notPresented: readonly Variant[] = [
  ['no Authorization', () => []],
  ['an empty Authorization', () => ['']],
  ['Basic', () => [`Basic ${btoa('admin:password')}`]],
  ['Digest', () => ['Digest username="a", realm="b"']],
  ['another scheme with a live token', ({ access_token }) => [`Token ${access_token}`]],
  ['DPoP with a live token', ({ access_token }) => [`DPoP ${access_token}`]],
  ['Basic with a live token', ({ access_token }) => [`Basic ${access_token}`]],
  ['a live token without a scheme', ({ access_token }) => [access_token]],
  ['no space behind the scheme', ({ access_token }) => [`Bearer${access_token}`]],
  ['a colon behind the scheme', ({ access_token }) => [`Bearer:${access_token}`]],
  ['a longer scheme', ({ access_token }) => [`Bearers ${access_token}`]],
]

const presented: readonly Variant[] = [
  ['unknown', () => [`Bearer ${'A'.repeat(43)}`]],
  ['one character', () => ['Bearer x']],
  ['a refresh token', ({ refresh_token }) => [`Bearer ${refresh_token}`]],
  ['all but the last character', ({ access_token }) => [`Bearer ${access_token.slice(0, -1)}`]],
  ['one character too many', ({ access_token }) => [`Bearer ${access_token}A`]],
  ['padding', ({ access_token }) => [`Bearer ${access_token}=`]],
  ['upper and lower case swapped', ({ access_token }) => [`Bearer ${swapCase(access_token)}`]],
  ['another base64url spelling of the same bytes', ({ access_token }) => [`Bearer ${respell(access_token)}`]],
  ['a word behind it', ({ access_token }) => [`Bearer ${access_token} x`]],
  ['a parameter behind it', ({ access_token }) => [`Bearer ${access_token}, realm="x"`]],
  ['a list of two', ({ access_token }) => [`Bearer ${access_token}, Bearer ${access_token}`]],
  ['quotation marks', ({ access_token }) => [`Bearer "${access_token}"`]],
  ['a parameter with the token as its value', ({ access_token }) => [`Bearer token="${access_token}"`]],
  ['percent-encoding', ({ access_token }) => [`Bearer %${access_token}`]],
  ['a tab before it', ({ access_token }) => [`Bearer\t${access_token}`]],
  ['a space and a tab before it', ({ access_token }) => [`Bearer \t${access_token}`]],
  ['a comma before it', ({ access_token }) => [`Bearer ,${access_token}`]],
  ['the scheme twice', ({ access_token }) => [`Bearer Bearer ${access_token}`]],
  ['punctuation only', () => ['Bearer ====']],
  ['bytes beyond ASCII', () => ['Bearer \xe4\xf6\xfc']],
  ['a property name of JavaScript', () => ['Bearer __proto__']],
  ['oversized', () => [`Bearer ${'x'.repeat(8000)}`]],
  [
    'oversized, beginning with a live one',
    ({ access_token }) => [`Bearer ${access_token}${'x'.repeat(8000)}`],
  ],
  ['the same header twice', ({ access_token }) => [`Bearer ${access_token}`, `Bearer ${access_token}`]],
  ['a live and an unknown one', ({ access_token }) => [`Bearer ${access_token}`, 'Bearer x']],
  ['an unknown and a live one', ({ access_token }) => ['Bearer x', `Bearer ${access_token}`]],
  ['a live one and Basic', ({ access_token }) => [`Bearer ${access_token}`, 'Basic eDp4']],
  ['Basic and a live one', ({ access_token }) => ['Basic eDp4', `Bearer ${access_token}`]],
]

/** Places of a request in which the gate must not look for a token. */
const elsewhere: readonly (readonly [string, (token: string) => ApiRequest])[] = [
  ['the query', (token) => ({ path: `/x?access_token=${token}` })],
  [
    'a form',
    (token) => ({
      body: `access_token=${token}`,
      fields: ['Content-Type', 'application/x-www-form-urlencoded'],
    }),
  ],
  ['a cookie', (token) => ({ fields: ['Cookie', `access_token=${token}`] })],
  ['Proxy-Authorization', (token) => ({ fields: ['Proxy-Authorization', `Bearer ${token}`] })],
  ['X-Authorization', (token) => ({ fields: ['X-Authorization', `Bearer ${token}`] })],
]

describeProtocols('C10 C11 The bearer check', (transport) => {
  let sidecar: TestSidecar
  let tokens: Tokens
  beforeAll(async () => {
    sidecar = await startSidecar({ transport })
    tokens = await sidecar.grant()
  })
  const ask = (values: readonly string[]) =>
    sidecar.request({ path: '/x', fields: values.flatMap((value) => ['Authorization', value]) })

  it.each(accepted)('C10 the request is admitted: %s', async (_name, authorization) => {
    const response = await ask(authorization(tokens))
    expect([response.status, response.text]).toEqual([200, 'from the device'])
  })

  it.each(notPresented)(
    'C10 C11 a request that presents no bearer token is 401 without an error code: %s',
    async (_name, authorization) => {
      const before = sidecar.device.byteCount
      expectUnauthorized(await ask(authorization(tokens)), false)
      expect(sidecar.device.byteCount).toBe(before)
    },
  )

  it.each(presented)(
    'C10 C11 a request that presents an invalid bearer token is 401 invalid_token: %s',
    async (_name, authorization) => {
      const before = sidecar.device.byteCount
      expectUnauthorized(await ask(authorization(tokens)), true)
      expect(sidecar.device.byteCount).toBe(before)
    },
  )

  it.each(['Bearer', 'Bearer ', 'bearer'])('C10 the bare scheme "%s" is 401', async (value) => {
    const response = await ask([value])
    expectError(response, 401, 'invalid_token')
    expect([plain, invalid]).toContain(response.header('WWW-Authenticate'))
  })

  it.each(elsewhere)('C10 a live token in %s is not read', async (_name, request) => {
    expectUnauthorized(await sidecar.request(request(tokens.access_token)), false)
  })

  it.each(['HEAD', 'OPTIONS', 'PUT', 'DELETE', 'PATCH', 'PROPFIND'])(
    'C10 %s needs a token',
    async (method) => {
      const response = await sidecar.request({ method, path: '/x' })
      expect([response.status, response.header('WWW-Authenticate')]).toEqual([401, plain])
      expect((await sidecar.request({ method, path: '/x', token: tokens.access_token })).status).toBe(200)
    },
  )

  it('C10 an expired token is 401 invalid_token', async () => {
    const timed = await startSidecar({ transport, clock: stillClock() })
    const token = await timed.token()
    await timed.clock.leap(3_600_000)
    expectUnauthorized(await timed.request({ token }), true)
    await timed.clock.leap(36_000_000_000)
    expectUnauthorized(await timed.request({ token }), true)
    expect(timed.device.byteCount).toBe(0)
  })

  it('C10 a revoked token is 401 invalid_token', async () => {
    const config = { tokens: { rotate_refresh: true, refresh_grace: 0 } }
    const rotating = await startSidecar({ transport, clock: stillClock(), config })
    const first = await rotating.grant()
    const second = await rotating.refresh(first.refresh_token)
    await rotating.clock.advance(1000)
    const reuse = await rotating.postToken({
      grant_type: 'refresh_token',
      refresh_token: first.refresh_token,
    })
    expect(reuse.status).toBe(400)
    expectUnauthorized(await rotating.request({ token: first.access_token }), true)
    expectUnauthorized(await rotating.request({ token: second.access_token }), true)
  })

  it('C10 a token of one sidecar is unknown to another', async () => {
    const other = await startSidecar({ transport })
    expectUnauthorized(await other.request({ token: tokens.access_token }), true)
  })

  it('C11 the challenge names the configured realm', async () => {
    const named = await startSidecar({ transport, config: { realm: 'Pump room 3' } })
    const none = await named.request()
    expect(none.header('WWW-Authenticate')).toBe('Bearer realm="Pump room 3"')
    const unknown = await named.request({ token: 'x' })
    expect(unknown.header('WWW-Authenticate')).toBe('Bearer realm="Pump room 3", error="invalid_token"')
  })

  it('C11 a response with another status carries no challenge', async () => {
    const good = await sidecar.request({ token: tokens.access_token })
    expect(good.values('WWW-Authenticate')).toEqual([])
    const bad = await sidecar.postToken({ grant_type: 'password', password: 'wrong' })
    expect(bad.values('WWW-Authenticate')).toEqual([])
  })
})

function swapCase(text: string): string {
  return text.replace(/[a-z]|[A-Z]/g, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  )
}

/** Writes the same 32 bytes otherwise: decoding drops two bits of the last of the 43 characters. */
function respell(token: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const last = alphabet.indexOf(token.at(-1) ?? '')
  return token.slice(0, -1) + (alphabet[last ^ 1] ?? '')
}
