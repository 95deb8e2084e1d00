import { expect, it } from 'vitest'
import { expectError } from '../support/errors.ts'
import type { ApiRequest } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'
import { sharedFront } from '../support/front.ts'

/** Values of Authorization; `TOKEN` stands for a live token. */
const ACCEPTED = [
  ...['Bearer TOKEN', 'bearer TOKEN', 'BEARER TOKEN', 'bEaReR TOKEN'],
  ...[
    'Bearer  TOKEN',
    `Bearer${' '.repeat(200)}TOKEN`,
    '  Bearer TOKEN',
    'Bearer TOKEN  ',
    '\tBearer TOKEN\t',
  ],
]

const REFUSED = [
  ...[
    '',
    ' ',
    'Bearer',
    'Bearer ',
    'Bearer  ',
    'TOKEN',
    'BearerTOKEN',
    'Bearer=TOKEN',
    'Bearer:TOKEN',
    'Bearer,TOKEN',
  ],
  ...[
    'Bearer\tTOKEN',
    'Bearer \tTOKEN',
    'Bearer\t TOKEN',
    'Bearer TOKEN\tx',
    'Bearer\xa0TOKEN',
    'Bearer \xa0TOKEN',
    'Bearer TOKEN\xa0',
  ],
  ...[
    'Bearer a b',
    'Bearer TOKEN TOKEN',
    'Bearer TOKEN b',
    'Bearer b TOKEN',
    'Bearer Bearer TOKEN',
    'Bearer x Bearer TOKEN',
  ],
  ...[
    'Bearer TOKEN,',
    'Bearer ,TOKEN',
    'Bearer TOKEN,TOKEN',
    'Bearer TOKEN, Bearer TOKEN',
    'Basic eDp5, Bearer TOKEN',
    'Bearer x, Bearer TOKEN',
  ],
  ...[
    'Bearer "TOKEN"',
    "Bearer 'TOKEN'",
    'Bearer <TOKEN>',
    'Bearer {TOKEN}',
    'Bearer token=TOKEN',
    'Bearer TOKEN;',
    'Bearer TOKEN#',
    'Bearer TOKEN?',
  ],
  ...[
    'Bearer TOKEN=',
    'Bearer =TOKEN',
    'Bearer TOKEN.',
    'Bearer TOKEN%00',
    'Bearer %54OKEN',
    'Bearer TOKEN\\',
    'Bearer ../TOKEN',
    'Bearer TOKEN/',
  ],
  ...[
    'Bearer \xe4',
    'Bearer TOKEN\xe4',
    'Bearer \xff\xfe',
    'B\xe9arer TOKEN',
    'Bear\u212aer TOKEN'.replace('\u212a', '\xe2\x84\xaa'),
    'Bearer \xc2\xadTOKEN',
  ],
  ...[
    'Basic TOKEN',
    'Token TOKEN',
    'DPoP TOKEN',
    'Bearers TOKEN',
    'Beare TOKEN',
    'XBearer TOKEN',
    'Negotiate TOKEN',
    'bearer-TOKEN',
  ],
  ...[
    'Bearer undefined',
    'Bearer null',
    'Bearer __proto__',
    'Bearer constructor',
    'Bearer 0',
    'Bearer *',
    'Bearer ====',
    'Bearer -',
  ],
  ...[
    `Bearer ${'x'.repeat(8192)}`,
    `Bearer TOKEN${'x'.repeat(8192)}`,
    `Bearer TOKEN${'='.repeat(8192)}`,
    `Bearer ${'A'.repeat(43)}`,
  ],
]

/** Places of a request in which the gate must not look for a token. */
const ELSEWHERE: readonly (readonly [string, (token: string) => ApiRequest])[] = [
  ['the query', (token) => ({ path: `/x?access_token=${token}` })],
  ['the query, with a scheme', (token) => ({ path: `/x?Authorization=Bearer%20${token}` })],
  [
    'a form',
    (token) => ({
      body: `access_token=${token}`,
      fields: ['Content-Type', 'application/x-www-form-urlencoded'],
    }),
  ],
  [
    'JSON',
    (token) => ({
      body: JSON.stringify({ access_token: token }),
      fields: ['Content-Type', 'application/json'],
    }),
  ],
  ['a cookie', (token) => ({ fields: ['Cookie', `access_token=${token}; Authorization=Bearer ${token}`] })],
  ['Proxy-Authorization', (token) => ({ fields: ['Proxy-Authorization', `Bearer ${token}`] })],
  [
    'X-Authorization',
    (token) => ({ fields: ['X-Authorization', `Bearer ${token}`, 'X-Access-Token', token] }),
  ],
  ['Sec-WebSocket-Protocol', (token) => ({ fields: ['Sec-WebSocket-Protocol', `bearer, ${token}`] })],
  ['Basic, as a password', (token) => ({ fields: ['Authorization', `Basic ${btoa(`x:${token}`)}`] })],
]

describeProtocols('Bearer credentials', (transport) => {
  const front = sharedFront(transport)

  const request = (value: string) =>
    front.sidecar.request({ path: '/x', fields: ['Authorization', value.replaceAll('TOKEN', front.token)] })

  it.each(ACCEPTED)('H35 Authorization "%s" is accepted', async (value) => {
    // Whitespace around a value is not part of it in HTTP/1, and HTTP/2 forbids it (RFC 9113 §8.2.1).
    const forbidden = transport === 'h2' && value !== value.trim()
    const status = await request(value)
      .then((response) => response.status)
      .catch(() => 400)
    expect(forbidden ? [401, 400] : [200]).toContain(status)
  })

  it.each(REFUSED)('H35 Authorization %j is 401, and no byte reaches the device', async (value) => {
    const before = front.sidecar.device.byteCount
    const response = await request(value)
    expectError(response, 401, 'invalid_token')
    expect(response.header('WWW-Authenticate')).toMatch(/^Bearer realm="device"(?:, error="invalid_token")?$/)
    expect(front.sidecar.device.byteCount).toBe(before)
  })

  it.each(ELSEWHERE)('H36 a live token in %s is not read', async (_place, make) => {
    const before = front.sidecar.device.byteCount
    const response = await front.sidecar.request({ path: '/x', ...make(front.token) })
    expectError(response, 401, 'invalid_token')
    expect(front.sidecar.device.byteCount).toBe(before)
  })
})
