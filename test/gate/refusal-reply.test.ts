import { expect, it } from 'vitest'
import { refusalReply } from '../../src/gate/refusal-reply.ts'
import type { Fields } from '../../src/http/fields.ts'
import type { Refusal } from '../../src/http/refusal.ts'

type Row = readonly [Refusal, http: number, contract: number, code: string, ...fields: string[]]

/** How many entries of the fields describe the body. */
const OF_THE_BODY = 10

const REALM = 'Bearer realm="r"'
const INVALID = ['WWW-Authenticate', `${REALM}, error="invalid_token"`]
const BUSY = ['Retry-After', '1', ...failed('connection_limit_reached')]

/** Every refusal, with its status for `status_codes: http` and for `contract`, its code, and its own fields. */
const ROWS: readonly Row[] = [
  [{ kind: 'malformed', description: 'x' }, 400, 400, 'invalid_request'],
  [{ kind: 'invalid-request', description: 'x' }, 400, 400, 'invalid_request'],
  [{ kind: 'method-not-allowed', allow: 'POST' }, 405, 400, 'invalid_request', 'Allow', 'POST'],
  [{ kind: 'unsupported-media-type' }, 415, 400, 'invalid_request'],
  [{ kind: 'content-too-large' }, 413, 400, 'invalid_request'],
  [{ kind: 'body-too-large' }, 413, 400, 'invalid_request'],
  [{ kind: 'length-required' }, 411, 400, 'invalid_request'],
  [{ kind: 'request-timeout' }, 408, 400, 'invalid_request'],
  [{ kind: 'expectation-failed' }, 417, 400, 'invalid_request'],
  [{ kind: 'header-too-large' }, 431, 400, 'invalid_request'],
  [{ kind: 'cross-origin' }, 403, 400, 'invalid_request'],
  [{ kind: 'address-denied' }, 403, 400, 'invalid_request'],
  [{ kind: 'invalid-grant', description: 'x' }, 400, 400, 'invalid_grant'],
  [{ kind: 'unsupported-grant-type', description: 'x' }, 400, 400, 'unsupported_grant_type'],
  [{ kind: 'unauthorized', cause: 'missing' }, 401, 401, 'invalid_token', 'WWW-Authenticate', REALM],
  [{ kind: 'unauthorized', cause: 'expired' }, 401, 401, 'invalid_token', ...INVALID],
  [{ kind: 'rate-limited', retryAfter: 7 }, 429, 429, 'rate_limited', 'Retry-After', '7'],
  [{ kind: 'wrong-passwords', retryAfter: 8 }, 429, 429, 'rate_limited', 'Retry-After', '8'],
  [{ kind: 'logins-overloaded', retryAfter: 1 }, 503, 500, 'overloaded', 'Retry-After', '1'],
  [{ kind: 'overloaded', retryAfter: 1 }, 503, 500, 'overloaded', ...BUSY],
  [
    { kind: 'upstream', failure: 'connection_refused', retryAfter: 5 },
    502,
    500,
    'upstream_unavailable',
    ...unreachable('connection_refused'),
  ],
  // The device may have got the request, so no browser sends it again by itself.
  [
    { kind: 'upstream', failure: 'connection_terminated' },
    502,
    500,
    'upstream_unavailable',
    ...failed('connection_terminated'),
  ],
  [
    { kind: 'upstream', failure: 'connection_timeout', retryAfter: 5 },
    504,
    500,
    'upstream_timeout',
    ...unreachable('connection_timeout'),
  ],
  [
    { kind: 'upstream', failure: 'http_response_timeout' },
    504,
    500,
    'upstream_timeout',
    ...failed('http_response_timeout'),
  ],
  [{ kind: 'store-unavailable' }, 503, 500, 'server_error', ...failed('proxy_internal_error')],
  [{ kind: 'server-error' }, 500, 500, 'server_error'],
]

function unreachable(error: string): readonly string[] {
  return ['Retry-After', '5', ...failed(error)]
}

function failed(error: string): readonly string[] {
  return ['Proxy-Status', `postern; error=${error}`]
}

for (const [refusal, http, contract, code, ...own] of ROWS) {
  it(`C18 C19 ${JSON.stringify(refusal)} is ${http}, or ${contract} by the documented API`, () => {
    for (const [statusCodes, status] of [
      ['http', http],
      ['contract', contract],
    ] as const) {
      const reply = refusalReply(refusal, { statusCodes, realm: 'r' })
      expect(reply.status).toBe(status)
      expect(JSON.parse(reply.body)).toEqual({ error: code, error_description: expect.stringMatching(/./) })
      expect(reply.fields.slice(OF_THE_BODY)).toEqual(own)
    }
  })
}

it('C18 with the precise statuses a challenge tells a client that its login may not make the request', () => {
  const fieldsOf = (statusCodes: 'http' | 'contract'): Fields =>
    refusalReply({ kind: 'insufficient-scope' }, { statusCodes, realm: 'a "b"' }).fields
  expect(fieldsOf('http').slice(OF_THE_BODY)).toEqual([
    'WWW-Authenticate',
    'Bearer realm="a \\"b\\"", error="insufficient_scope"',
  ])
  expect(fieldsOf('contract').slice(OF_THE_BODY)).toEqual([])
  for (const [statusCodes, status] of [
    ['http', 403],
    ['contract', 400],
  ] as const)
    expect(refusalReply({ kind: 'insufficient-scope' }, { statusCodes, realm: 'r' }).status).toBe(status)
})

it.each(['Heizhaus Süd', 'ボイラー室', 'a "quoted" \\ name', '"', '\\', "it's 12 € 🔥"])(
  'H220 C11 the realm %j stands in the challenge as a quoted string in UTF-8',
  (realm) => {
    for (const [cause, error] of [
      ['missing', ''],
      ['unknown', ', error="invalid_token"'],
    ] as const) {
      const { fields } = refusalReply({ kind: 'unauthorized', cause }, { statusCodes: 'contract', realm })
      const value = fields[fields.indexOf('WWW-Authenticate') + 1] ?? ''
      // RFC 9110 §5.6.4.
      const [, quoted = '', rest] = /^Bearer realm="((?:[^"\\]|\\.)*)"(.*)$/.exec(value) ?? []
      expect(Buffer.from(quoted.replaceAll(/\\(.)/gs, '$1'), 'latin1').toString()).toBe(realm)
      expect(rest).toBe(error)
    }
  },
)
