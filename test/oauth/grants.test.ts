import { expect, it } from 'vitest'
import { required } from '../../src/oauth/form-request.ts'
import { createTokenEndpoint, type GrantType } from '../../src/oauth/token-endpoint.ts'
import { bareExchange } from '../support/exchange.ts'
import { requestHead } from '../support/request-head.ts'

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

const endpoint = createTokenEndpoint([pairing, other], { config: { listen: { bodyTimeout: 1000 } } })

/** Posts a form. The endpoint uses nothing else of the exchange. */
function post(form: string): ReturnType<typeof endpoint> {
  const body = async function* (): AsyncGenerator<Buffer> {
    yield Buffer.from(form)
  }
  const head = requestHead({ fields: ['Content-Type', 'application/x-www-form-urlencoded'] })
  const client = { address: '192.0.2.1', key: '192.0.2.1', peerTrusted: false, admitted: true }
  return endpoint(bareExchange({ client, body }, head))
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
