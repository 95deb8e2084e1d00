import { expect, it } from 'vitest'
import { expectError } from '../support/errors.ts'
import { answersIn } from '../support/raw-answers.ts'
import { describeTransports } from '../support/transports.ts'
import { get, heldFront, post, startFront } from './front.ts'

type Case = readonly [name: string, bytes: string]

const TWINS = [
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
  ...TWINS.map((name): Case => [`H18 the look-alike ${name}`, post(`${name}: 5`, 'Content-Length: 0')]),
  ['H20 no Host', withHost()],
  ['H20 two Hosts', withHost(' device', ' device')],
  ['H20 two different Hosts', withHost(' device', ' other')],
  ['H20 an empty Host behind another', withHost(' device', '')],
  ...BAD_HOSTS.map((host): Case => [`H20 a Host of ${JSON.stringify(host)}`, withHost(` ${host}`)]),
]

describeTransports(
  'Headers',
  (transport) => {
    const front = heldFront(transport)

    it.each(refused)('%s is refused with 400, closed, not a byte at the device', (_name, bytes) =>
      front.refuses(bytes),
    )

    it.each([
      ['the same twice', 'Authorization: Bearer TOKEN'],
      ['a good one and another scheme', 'Authorization: Basic eDp5'],
      ['a good one and an empty one', 'Authorization:'],
      ['two casings', 'AUTHORIZATION: Bearer TOKEN'],
    ])('H19 two Authorization fields are 401: %s', async (_name, second) => {
      const before = front.sidecar.device.byteCount
      const [answer] = await front.answersTo(get(second, 'Connection: close'))
      expect(answer?.status).toBe(401)
      expect(front.sidecar.device.byteCount).toBe(before)
    })

    it.each([
      ['many fields', Array<string>(101).fill('A: b')],
      ['a field that is too large', [`A: ${'b'.repeat(20_000)}`]],
      ['a name that is too large', [`${'A'.repeat(20_000)}: b`]],
      ['many small fields', Array<string>(5000).fill('A: bcd')],
      ['many empty fields', Array<string>(20_000).fill('A:')],
    ])('H22 %s: refused, 431 in http mode, closed, not a byte at the device', async (_name, fields) => {
      const before = front.sidecar.device.byteCount
      const [answer] = await front.answersTo(get(...fields, 'Connection: close'))
      expect(answer && expectError(answer, 400, 'invalid_request')).toBeUndefined()
      expect(front.sidecar.device.byteCount).toBe(before)
      const precise = await startFront(transport, { status_codes: 'http' })
      expect((await precise.answersTo(get(...fields, 'Connection: close')))[0]?.status).toBe(431)
    })

    it('H22 the cap is on what a parser counts, however it is cut into packets', async () => {
      const raw = await front.send(get(`A: ${'b'.repeat(70_000)}`), 50)
      expect(answersIn(await raw.closed).map(({ status }) => status)).toEqual([400])
    })
  },
  ['http1', 'tls'],
)
