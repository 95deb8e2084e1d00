import { it } from 'vitest'
import { expectError } from '../support/errors.ts'
import type { Response } from '../support/message.ts'
import { FORM_TYPE, PASSWORD_GRANT } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'
import { sharedFront } from '../support/front.ts'

const BAD_TYPES = [
  ...[
    '',
    'application/json',
    'text/plain',
    '*/*',
    'application/*',
    'form',
    `${FORM_TYPE}x`,
    `x${FORM_TYPE}`,
    `${FORM_TYPE}/x`,
  ],
  ...[
    `${FORM_TYPE}, ${FORM_TYPE}`,
    `${FORM_TYPE},`,
    `${FORM_TYPE} x`,
    `${FORM_TYPE}; x`,
    `${FORM_TYPE}; charset`,
    `${FORM_TYPE}; charset=`,
    `"${FORM_TYPE}"`,
  ],
  ...[
    `${FORM_TYPE}; charset=latin1; charset=ascii`,
    `${FORM_TYPE}; charset=utf-16`,
    `${FORM_TYPE}; charset=utf-7`,
    `${FORM_TYPE}; charset=utf8x`,
  ],
  ...[
    `${FORM_TYPE}; charset="utf-8`,
    `${FORM_TYPE}; charset=utf-8 x`,
    `${FORM_TYPE}; charset=utf-8; charset=utf-16`,
  ],
  ...[
    'multipart/form-data',
    'multipart/form-data; boundary=x',
    'application/x-www-form-urlencoded-2',
    `${FORM_TYPE}\xa0`,
  ],
]

const BAD_BODIES = [
  ...[
    `${PASSWORD_GRANT}&grant_type=password`,
    `${PASSWORD_GRANT}&password=x`,
    `${PASSWORD_GRANT}&password=`,
    `${PASSWORD_GRANT}&p%61ssword=x`,
    `${PASSWORD_GRANT}&x=1&x=1`,
  ],
  ...[
    `grant_type=refresh_token&refresh_token=a&refresh_token=b`,
    `${PASSWORD_GRANT}&grant_type`,
    `password=x&${PASSWORD_GRANT}`,
  ],
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
    `${PASSWORD_GRANT};x`.replace('&', ';'),
    PASSWORD_GRANT.replace('&', '\r\n'),
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

describeProtocols('Token forms', (transport) => {
  const front = sharedFront(transport)

  const post = (
    body: string | Buffer,
    fields: readonly string[] = ['Content-Type', FORM_TYPE],
  ): Promise<Response> =>
    front.sidecar.request({
      method: 'POST',
      path: '/oauth/token',
      fields,
      body: typeof body === 'string' ? Buffer.from(body, 'latin1') : body,
    })

  it.each(BAD_TYPES)('H28 the content type "%s" is 400', async (type) => {
    expectError(await post(PASSWORD_GRANT, ['Content-Type', type]), 400, 'invalid_request')
  })

  it('H28 no content type is 400, and so are two', async () => {
    expectError(await post(PASSWORD_GRANT, []), 400, 'invalid_request')
    expectError(
      await post(PASSWORD_GRANT, ['Content-Type', FORM_TYPE, 'Content-Type', FORM_TYPE]),
      400,
      'invalid_request',
    )
  })

  it.each(BAD_BODIES)('H28 the body %j is 400', async (body) => {
    const response = await post(body)
    // Without an ampersand the whole body is one grant_type.
    expectError(response, 400, /[;\r]/.test(body) ? 'unsupported_grant_type' : 'invalid_request')
  })

  it.each(BAD_ESCAPES)('H31 %j in a value or a name is 400', async (text) => {
    expectError(await post(`${PASSWORD_GRANT}&x=${text}`), 400, 'invalid_request')
    expectError(await post(`${PASSWORD_GRANT}&${text}=x`), 400, 'invalid_request')
    expectError(await post(`grant_type=password&password=${text}`), 400, 'invalid_request')
  })
})
