import { join } from 'node:path'
import { expect, it } from 'vitest'
import { required } from '../../src/http/form.ts'
import {
  createPasswordGrant,
  createRefreshGrant,
  createRevocationEndpoint,
  createTokenEndpoint,
  type GrantType,
  type OwnEndpointHandler,
} from '../../src/oauth/token-endpoint.ts'
import { runCases } from '../support/cases.ts'
import { stillClock } from '../support/clock.ts'
import { bareExchange, requestHead } from '../support/exchange.ts'
import { bytesOf, refusalText } from '../support/shown-bytes.ts'

const TOKENS = { grant: 'g', accessToken: 'a', refreshToken: 'r', expiresIn: 60 }

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
function post(form: string | Buffer, to: OwnEndpointHandler = endpoint): ReturnType<OwnEndpointHandler> {
  const body = async function* (): AsyncGenerator<Buffer> {
    yield Buffer.from(form)
  }
  const head = requestHead({ fields: ['Content-Type', 'application/x-www-form-urlencoded'] })
  const client = { address: '192.0.2.1', key: '192.0.2.1', peerTrusted: false, hops: 0, admitted: true }
  return to(bareExchange({ client, body }, head))
}

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

runCases(join(import.meta.dirname, 'grants.txt'), {
  given: ['post', 'pair'],
  results: ['tokens', 'refused'],
  async play({ post: form, pair = '' }) {
    const result = await (form === undefined
      ? post(bytesOf(pair), endpoint)
      : post(bytesOf(form), documented))
    if ('kind' in result) return { refused: refusalText(result) }
    expect(result.response.status).toBe(200)
    return { tokens: result.response.body }
  },
})

it.each([
  ['wrong', { kind: 'invalid-grant', description: expect.any(String) }, ['wrong']],
  ['overloaded', { kind: 'logins-overloaded', retryAfter: 1 }, []],
  ['unchecked', { kind: 'password-unchecked' }, []],
  ['unavailable', { kind: 'store-unavailable' }, []],
  [{ slowedFor: 1_001 }, { kind: 'wrong-passwords', retryAfter: 2 }, []],
  [
    { unavailable: 'connection_refused' },
    { kind: 'upstream', failure: 'connection_refused' },
    ['connection_refused'],
  ],
  [TOKENS, { response: { status: 200 } }, []],
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
  [2, { response: { status: 200, body: '{}' } }],
  [0, { response: { status: 200, body: '{}' } }],
  ['unavailable', { kind: 'store-unavailable' }],
] as const)('a revocation that comes out as %j is answered so', async (revoked, expected) => {
  expect(
    await post(
      'token=x',
      createRevocationEndpoint(async () => revoked, settings, stillClock()),
    ),
  ).toMatchObject(expected)
})
