import { expect, it } from 'vitest'
import { required } from '../../src/oauth/form-request.ts'
import {
  createPasswordGrant,
  createRefreshGrant,
  createRevocationEndpoint,
  createTokenEndpoint,
  type GrantType,
  type OwnEndpointHandler,
} from '../../src/oauth/token-endpoint.ts'
import { stillClock } from '../support/clock.ts'
import { bareExchange } from '../support/exchange.ts'
import { requestHead } from '../support/request-head.ts'
import { rows } from '../support/rows.ts'

const TOKENS = { accessToken: 'a', refreshToken: 'r', expiresIn: 60 }

/** An invented grant type with two parameters. */
const pairing: GrantType = {
  name: 'pairing',
  async exchange(form, { client: { address } }) {
    const [serial, code] = [required(form, 'serial'), required(form, 'code')]
    if (typeof serial !== 'string') return serial
    if (typeof code !== 'string') return code
    return `${serial} ${code} ${address}` === 's1 c1 192.0.2.1'
      ? TOKENS
      : { kind: 'invalid-grant', description: 'no' }
  },
}
const other: GrantType = { ...pairing, name: 'other' }

const settings = { bodyTimeout: 1000 }
const endpoint = createTokenEndpoint([pairing, other], settings, stillClock())

/** Posts a form. The endpoint uses nothing else of the exchange. */
function post(form: string, to: OwnEndpointHandler = endpoint): ReturnType<OwnEndpointHandler> {
  const body = async function* (): AsyncGenerator<Buffer> {
    yield Buffer.from(form)
  }
  const head = requestHead({ fields: ['Content-Type', 'application/x-www-form-urlencoded'] })
  const client = { address: '192.0.2.1', key: '192.0.2.1', peerTrusted: false, hops: 0, admitted: true }
  return to(bareExchange({ client, body }, head))
}

it('the token endpoint serves a registered grant type and passes its parameters', async () => {
  expect(await post('grant_type=pairing&code=c1&serial=s1')).toMatchObject({
    reply: { status: 200, body: expect.stringContaining('"access_token":"a"') },
  })
})

it.each([
  [
    'code=c1&serial=s1',
    { kind: 'invalid-request', description: 'The parameter grant_type is missing or empty.' },
  ],
  [
    'grant_type=pairing&code=c1',
    { kind: 'invalid-request', description: 'The parameter serial is missing or empty.' },
  ],
  [
    'grant_type=pairing&serial=s1&code=',
    { kind: 'invalid-request', description: 'The parameter code is missing or empty.' },
  ],
  [
    'grant_type=password&password=x',
    { kind: 'unsupported-grant-type', description: 'The grant_type must be "pairing" or "other".' },
  ],
])('the token endpoint refuses %s', async (form, refusal) => {
  expect(await post(form)).toEqual(refusal)
})

const documented = createTokenEndpoint(
  [
    createPasswordGrant(
      async () => TOKENS,
      () => {},
      () => {},
    ),
    createRefreshGrant(
      async () => TOKENS,
      () => {},
    ),
  ],
  settings,
  stillClock(),
)

it.each(rows`
  ∅
  &
  =
  &&
  grant_type
  grant_type=
  grant_type&password=x
  grant_type=&password=x
  password=x
  grant_type=password
  grant_type=password&password
  grant_type=password&password=
  grant_type=password&Password=x
  grant_type=refresh_token
  grant_type=refresh_token&refresh_token=
  {"grant_type":"password"}
  <grant_type>password</grant_type>
  []
  null
  --x\r\nContent-Disposition: form-data; name="grant_type"\r\n\r\npassword\r\n--x--\r\n`)(
  'C2 H28 a token request without a required parameter is refused: %j',
  async (form) => {
    expect(await post(form, documented)).toMatchObject({ kind: 'invalid-request' })
  },
)

// Without an ampersand the whole body is one grant_type.
it.each(rows`
  client_credentials
  authorization_code
  implicit
  urn:ietf:params:oauth:grant-type:device_code
  Password
  PASSWORD
  password+
  +password
  refresh-token
  %C3%BC
  __proto__
  constructor
  password;password=x
  password\r\npassword=x`)('C5 H28 the grant type %j is unsupported', async (type) => {
  const refusal = await post(`grant_type=${type}&password=x&refresh_token=x`, documented)
  expect(refusal).toEqual({
    kind: 'unsupported-grant-type',
    description: 'The grant_type must be "password" or "refresh_token".',
  })
})

it('C3 C6 what is no parameter of a grant is ignored', async () => {
  const extra = 'username=&client_id=app&client_secret=%25%26%3D&scope=*&audience=x&x&y=&=z'
  for (const form of [
    'grant_type=password&password=x',
    'refresh_token=x&password=w&grant_type=refresh_token',
  ])
    expect(await post(`${extra}&${form}`, documented)).toMatchObject({ reply: { status: 200 } })
})

it.each([
  ['wrong', { kind: 'invalid-grant', description: expect.any(String) }, ['wrong']],
  ['overloaded', { kind: 'logins-overloaded', retryAfter: 1 }, []],
  ['unavailable', { kind: 'store-unavailable' }, []],
  [{ slowedFor: 1_001 }, { kind: 'wrong-passwords', retryAfter: 2 }, []],
  [
    { unavailable: 'connection_refused' },
    { kind: 'upstream', failure: 'connection_refused' },
    ['connection_refused'],
  ],
  [TOKENS, { reply: { status: 200 } }, []],
] as const)('a login that comes out as %j is answered so, and counted', async (result, expected, counted) => {
  const counts: string[] = []
  const grant = createPasswordGrant(
    async () => result,
    () => counts.push('wrong'),
    (failure) => counts.push(failure),
  )
  const reply = await post(
    'grant_type=password&password=x',
    createTokenEndpoint([grant], settings, stillClock()),
  )
  expect(reply).toMatchObject(expected)
  expect(counts).toEqual(counted)
})

it.each([
  [2, { reply: { status: 200, body: '{}' } }],
  [0, { reply: { status: 200, body: '{}' } }],
  ['unavailable', { kind: 'store-unavailable' }],
] as const)('a revocation that comes out as %j is answered so', async (revoked, expected) => {
  expect(
    await post(
      'token=x',
      createRevocationEndpoint(async () => revoked, settings, stillClock()),
    ),
  ).toMatchObject(expected)
})
