import { expect, it } from 'vitest'
import { expectError } from '../support/errors.ts'
import { responsesIn } from '../support/raw-responses.ts'
import { describeTransports } from '../support/transports.ts'
import { get, post, sharedFront, startFront } from '../support/front.ts'

type Case = readonly [name: string, bytes: string]

const LOOK_ALIKES = [
  ...['X_Forwarded_For', 'X-Forwarded_For', 'x_forwarded-for', 'X_FORWARDED_PROTO', 'X_Forwarded_Anything'],
  ...['X_Real_IP', 'X_Request_Id', 'Content_Length', 'content_length', 'Transfer_Encoding', 'X-Real_IP'],
]

const withHost = (...hosts: readonly string[]): string =>
  get().replace('Host: device\r\n', hosts.map((host) => `Host:${host}\r\n`).join(''))

const BAD_HOSTS = [
  ...[
    '',
    ' ',
    'a b',
    'a,b',
    'a/b',
    'a?b',
    'a#b',
    'a@b',
    'u:p@device',
    'a\\b',
    'http://device',
    '%zz',
    '"a"',
    '<a>',
  ],
  ...[
    '[::1',
    '::1',
    '[x]',
    '[::1]x',
    'a:b',
    'a:1:2',
    'a:-1',
    'a:99999999',
    'a\xe4',
    'a\tb',
    'a|b',
    'a^b',
    '[]',
  ],
]

const refused: readonly Case[] = [
  ...LOOK_ALIKES.map((name): Case => [`H18 the look-alike ${name}`, post(`${name}: 5`, 'Content-Length: 0')]),
  ['H20 no Host', withHost()],
  ['H20 two Hosts', withHost(' device', ' device')],
  ['H20 two different Hosts', withHost(' device', ' other')],
  ['H20 an empty Host behind another', withHost(' device', '')],
  ...BAD_HOSTS.map((host): Case => [`H20 a Host of ${JSON.stringify(host)}`, withHost(` ${host}`)]),
]

describeTransports(
  'Refused headers',
  (transport) => {
    const front = sharedFront(transport)

    it.each(refused)('%s: 400 and close, and no byte reaches the device', (_name, bytes) =>
      front.expectRefused(bytes),
    )

    it.each([
      ['the same twice', 'Authorization: Bearer TOKEN'],
      ['a good one and another scheme', 'Authorization: Basic eDp5'],
      ['a good one and an empty one', 'Authorization:'],
      ['two casings', 'AUTHORIZATION: Bearer TOKEN'],
    ])('H19 a request with two Authorization fields is 401: %s', async (_name, second) => {
      const before = front.sidecar.device.byteCount
      const [response] = await front.responsesTo(get(second, 'Connection: close'))
      expect(response?.status).toBe(401)
      expect(front.sidecar.device.byteCount).toBe(before)
    })

    it.each([
      ['101 fields', Array<string>(101).fill('A: b')],
      ['a field of 20,000 bytes', [`A: ${'b'.repeat(20_000)}`]],
      ['a name of 20,000 bytes', [`${'A'.repeat(20_000)}: b`]],
      ['5000 small fields', Array<string>(5000).fill('A: bcd')],
      ['20,000 empty fields', Array<string>(20_000).fill('A:')],
    ])('H22 %s: 400, in http mode 431, and no byte reaches the device', async (_name, fields) => {
      const before = front.sidecar.device.byteCount
      const [response] = await front.responsesTo(get(...fields, 'Connection: close'))
      expectError(response ?? expect.fail('no response'), 400, 'invalid_request')
      expect(front.sidecar.device.byteCount).toBe(before)
      const precise = await startFront(transport, { status_codes: 'http' })
      expect((await precise.responsesTo(get(...fields, 'Connection: close')))[0]?.status).toBe(431)
    })

    it('H22 the size cap holds for a head in fifty packets', async () => {
      const raw = await front.send(get(`A: ${'b'.repeat(70_000)}`), 50)
      expect(responsesIn(await raw.closed).map(({ status }) => status)).toEqual([400])
    })
  },
  ['http1'],
)
