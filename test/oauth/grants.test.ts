import { expect, it } from 'vitest'
import type { OwnEndpointRequest } from '../../src/http/admission.ts'
import type { Exchange } from '../../src/http/exchange.ts'
import { createTokenEndpoint, type GrantType } from '../../src/oauth/token-endpoint.ts'
import { requestHead } from '../support/request-head.ts'

const TOKENS = { accessToken: 'a', refreshToken: 'r', expiresIn: 60 }

/** An invented grant type with two parameters. */
const pairing: GrantType<'code' | 'serial'> = {
  name: 'pairing',
  parameters: ['serial', 'code'],
  exchange: ({ serial, code }, client) =>
    `${serial} ${code} ${client}` === 's1 c1 192.0.2.1'
      ? { kind: 'granted', tokens: TOKENS }
      : { kind: 'refused', refusal: { kind: 'invalid-grant', description: 'no' } },
}
const other: GrantType<never> = { ...pairing, name: 'other', parameters: [] }

const endpoint = createTokenEndpoint({ grants: [pairing, other], bodyTimeout: () => 1000 })

/** Posts a form. The endpoint uses nothing else of the exchange. */
function post(form: string): ReturnType<typeof endpoint> {
  const exchange = {
    head: requestHead({ fields: ['Content-Type', 'application/x-www-form-urlencoded'] }),
    async *body() {
      yield Buffer.from(form)
    },
  } as unknown as Exchange
  return endpoint({ client: '192.0.2.1' } as OwnEndpointRequest, exchange)
}

it('the token endpoint serves a registered grant type and passes its parameters', async () => {
  expect(await post('grant_type=pairing&code=c1&serial=s1')).toMatchObject({
    kind: 'reply',
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
  expect(await post(form)).toEqual({ kind: 'refused', refusal, close: false })
})
