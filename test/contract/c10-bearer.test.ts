import { beforeAll, expect, it } from 'vitest'
import { stillClock } from '../support/clock.ts'
import { expectError } from '../support/expectations.ts'
import type { Response } from '../support/message.ts'
import {
  type ApiRequest,
  FORM_TYPE,
  startSidecar,
  type TestSidecar,
  type Tokens,
} from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'

const plain = 'Bearer realm="device"'
const invalid = 'Bearer realm="device", error="invalid_token"'

/** Checks a 401 against C10, C11 and C18. `presented` says whether the request had a bearer token. */
function expectUnauthorized(response: Response, presented: boolean): void {
  expectError(response, 401, 'invalid_token')
  expect(response.values('WWW-Authenticate')).toEqual([presented ? invalid : plain])
}

type Variant = readonly [name: string, authorization: (tokens: Tokens) => readonly string[]]

/** One row for each reason; `gate/bearer.test.ts` has all spellings. */
const notPresented: readonly Variant[] = [
  ['no Authorization', () => []],
  ['an empty Authorization', () => ['']],
  ['the scheme alone', () => ['Bearer ']],
  ['another scheme with a live token', ({ access_token }) => [`Token ${access_token}`]],
  ['a live token without a scheme', ({ access_token }) => [access_token]],
]

const presented: readonly Variant[] = [
  ['unknown', () => [`Bearer ${'A'.repeat(43)}`]],
  ['a refresh token', ({ refresh_token }) => [`Bearer ${refresh_token}`]],
  ['all but the last character', ({ access_token }) => [`Bearer ${access_token.slice(0, -1)}`]],
  ['one character too many', ({ access_token }) => [`Bearer ${access_token}A`]],
  ['padding', ({ access_token }) => [`Bearer ${access_token}=`]],
  ['upper and lower case swapped', ({ access_token }) => [`Bearer ${swapCase(access_token)}`]],
  ['another base64url spelling of the same bytes', ({ access_token }) => [`Bearer ${respell(access_token)}`]],
  ['a word behind it', ({ access_token }) => [`Bearer ${access_token} x`]],
  ['a tab before it', ({ access_token }) => [`Bearer\t${access_token}`]],
  ['bytes beyond ASCII', () => ['Bearer \xe4\xf6\xfc']],
  ['a property name of JavaScript', () => ['Bearer __proto__']],
  ['oversized', ({ access_token }) => [`Bearer ${access_token}${'x'.repeat(8000)}`]],
  ['the same header twice', ({ access_token }) => [`Bearer ${access_token}`, `Bearer ${access_token}`]],
  ['a live one and Basic', ({ access_token }) => [`Bearer ${access_token}`, 'Basic eDp4']],
]

/** Places of a request in which the gate must not look for a token. */
const elsewhere = (token: string): readonly ApiRequest[] => [
  { path: `/x?access_token=${token}` },
  { path: `/x?Authorization=Bearer%20${token}` },
  { body: `access_token=${token}`, fields: ['Content-Type', FORM_TYPE] },
  { body: JSON.stringify({ access_token: token }), fields: ['Content-Type', 'application/json'] },
  { fields: ['Cookie', `access_token=${token}; Authorization=Bearer ${token}`] },
  { fields: ['Proxy-Authorization', `Bearer ${token}`] },
  { fields: ['X-Authorization', `Bearer ${token}`, 'X-Access-Token', token] },
  { fields: ['Sec-WebSocket-Protocol', `bearer, ${token}`] },
  { fields: ['Authorization', `Basic ${btoa(`x:${token}`)}`] },
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

  it('C10 H35 a live token behind the scheme in any case and any number of spaces is admitted', async () => {
    for (const scheme of ['Bearer ', `bEaReR${' '.repeat(50)}`]) {
      const response = await ask([scheme + tokens.access_token])
      expect([response.status, response.text]).toEqual([200, 'from the device'])
    }
  })

  // Blanks around a value are no part of it in HTTP/1, and HTTP/2 forbids them (RFC 9113 §8.2.1): a client may not even send them.
  it('C10 H35 blanks around the value are stripped in HTTP/1 and refused in HTTP/2', async () => {
    const statuses: number[] = []
    for (const value of [`  Bearer ${tokens.access_token}`, `\tBearer ${tokens.access_token} \t`])
      statuses.push(
        await ask([value])
          .then(({ status }) => status)
          .catch(() => 401),
      )
    const status = transport === 'h2' ? 401 : 200
    expect(statuses.map((each) => (each === 400 ? 401 : each))).toEqual([status, status])
  })

  it.each(notPresented)(
    'C10 C11 H35 a request that presents no bearer token is 401 without an error code: %s',
    async (_name, authorization) => {
      const before = sidecar.device.byteCount
      expectUnauthorized(await ask(authorization(tokens)), false)
      expect(sidecar.device.byteCount).toBe(before)
    },
  )

  it.each(presented)(
    'C10 C11 H19 H35 a request that presents an invalid bearer token is 401 invalid_token: %s',
    async (_name, authorization) => {
      const before = sidecar.device.byteCount
      expectUnauthorized(await ask(authorization(tokens)), true)
      expect(sidecar.device.byteCount).toBe(before)
    },
  )

  it('C10 H36 a live token in a query, a body, a cookie or another field is not read', async () => {
    const before = sidecar.device.byteCount
    for (const request of elsewhere(tokens.access_token))
      expectUnauthorized(await sidecar.request({ path: '/x', ...request }), false)
    expect(sidecar.device.byteCount).toBe(before)
  })

  it('C10 every method needs a token', async () => {
    for (const method of ['HEAD', 'OPTIONS', 'PUT', 'DELETE', 'PATCH', 'PROPFIND']) {
      const response = await sidecar.request({ method, path: '/x' })
      expect([response.status, response.header('WWW-Authenticate')]).toEqual([401, plain])
      expect((await sidecar.request({ method, path: '/x', token: tokens.access_token })).status).toBe(200)
    }
  })

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
