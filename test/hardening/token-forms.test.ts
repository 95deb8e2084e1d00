import { it } from 'vitest'
import { expectError } from '../support/errors.ts'
import type { Response } from '../support/message.ts'
import { encodeForm, PASSWORD } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { heldFront } from './front.ts'

const TYPE = 'application/x-www-form-urlencoded'
const GOOD = encodeForm({ grant_type: 'password', password: PASSWORD })

const BAD_TYPES = [
  ...[
    '',
    'application/json',
    'text/plain',
    '*/*',
    'application/*',
    'form',
    `${TYPE}x`,
    `x${TYPE}`,
    `${TYPE}/x`,
  ],
  ...[
    `${TYPE}, ${TYPE}`,
    `${TYPE},`,
    `${TYPE} x`,
    `${TYPE}; x`,
    `${TYPE}; charset`,
    `${TYPE}; charset=`,
    `"${TYPE}"`,
  ],
  ...[
    `${TYPE}; charset=latin1`,
    `${TYPE}; charset=utf-16`,
    `${TYPE}; charset=utf-7`,
    `${TYPE}; charset=utf8x`,
  ],
  ...[
    `${TYPE}; charset="utf-8`,
    `${TYPE}; charset=utf-8 x`,
    `${TYPE}; charset=utf-8; charset=utf-16`,
    `${TYPE}\x0b`,
  ],
  ...[
    'multipart/form-data',
    'multipart/form-data; boundary=x',
    'application/x-www-form-urlencoded-2',
    `${TYPE}\xa0`,
  ],
].filter((type) => !type.includes('\x0b')) // no field may hold that: see 8

const BAD_BODIES = [
  ...[
    `${GOOD}&grant_type=password`,
    `${GOOD}&password=x`,
    `${GOOD}&password=`,
    `${GOOD}&p%61ssword=x`,
    `${GOOD}&x=1&x=1`,
  ],
  ...[`grant_type=refresh_token&refresh_token=a&refresh_token=b`, `${GOOD}&grant_type`, `password=x&${GOOD}`],
  ...[
    '',
    '&',
    '=',
    '&&',
    'grant_type',
    'grant_type=',
    'grant_type=password',
    'grant_type=password&password',
    'password=x',
  ],
  ...[
    '{"grant_type":"password"}',
    '<a/>',
    '[]',
    'null',
    `${GOOD};x`.replace('&', ';'),
    GOOD.replace('&', '\r\n'),
  ],
]

const BAD_ESCAPES = [
  ...[
    '%00',
    'a%00',
    '%00a',
    '%ff',
    '%fe%ff',
    '%zz',
    '%',
    '%2',
    '%%',
    '%u0041',
    '%c0%80',
    '%c1%bf',
    '%e0%80%af',
    '%f8%88%80%80%80',
  ],
  ...[
    '%ed%a0%80',
    '%ed%bf%bf',
    '%ed%a0%bd%ed%b8%80',
    '%f4%90%80%80',
    '%e2%82',
    '%c3',
    '%80',
    '\xff',
    '\xc3',
    '\xed\xa0\x80',
    '\0',
    'a\0b',
  ],
]

describeTransports('Forms', (transport) => {
  const front = heldFront(transport)

  const post = (
    body: string | Buffer,
    fields: readonly string[] = ['Content-Type', TYPE],
  ): Promise<Response> =>
    front.sidecar.request({
      method: 'POST',
      path: '/oauth/token',
      fields,
      body: typeof body === 'string' ? Buffer.from(body, 'latin1') : body,
    })

  it.each(BAD_TYPES)('H28 the type "%s" is 400', async (type) => {
    expectError(await post(GOOD, ['Content-Type', type]), 400, 'invalid_request')
  })

  it('H28 no type at all is 400, and so are two', async () => {
    expectError(await post(GOOD, []), 400, 'invalid_request')
    expectError(await post(GOOD, ['Content-Type', TYPE, 'Content-Type', TYPE]), 400, 'invalid_request')
  })

  it.each(BAD_BODIES)('H28 the body %j is 400', async (body) => {
    const answer = await post(body)
    // A separator of another kind makes one long grant_type.
    expectError(answer, 400, /[;\r]/.test(body) ? 'unsupported_grant_type' : 'invalid_request')
  })

  it.each(BAD_ESCAPES)('H31 %j in a value or a name is 400', async (text) => {
    expectError(await post(`${GOOD}&x=${text}`), 400, 'invalid_request')
    expectError(await post(`${GOOD}&${text}=x`), 400, 'invalid_request')
    expectError(await post(`grant_type=password&password=${text}`), 400, 'invalid_request')
  })
})
