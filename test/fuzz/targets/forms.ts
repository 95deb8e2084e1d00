import fc from 'fast-check'
import { PASSWORD } from '../../support/sidecar.ts'
import { ACCESS, REFRESH } from '../case.ts'
import { inPieces, mutated } from '../mutation.ts'
import { playRequests } from '../requests.ts'
import { CLEARTEXT, ENCRYPTED, type Target } from '../target.ts'
import { endings } from './heads.ts'

const everyByteEscaped = Buffer.from(PASSWORD)
  .toString('hex')
  .replace(/../g, (hex) => `%${hex}`)
const passwords = [
  encodeURIComponent(PASSWORD),
  new URLSearchParams([['', PASSWORD]]).toString().slice(1),
  everyByteEscaped,
]

const value = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...passwords, REFRESH) },
  { weight: 2, arbitrary: fc.constantFrom('password', 'refresh_token', 'x', '', ACCESS) },
  fc.constantFrom(
    '%',
    '%zz',
    '%00',
    '%ff',
    '%c3',
    '%ed%a0%80',
    '\xff',
    '+',
    '%2',
    '%u0041',
    'ä',
    'a'.repeat(9000),
  ),
)
const name = fc.constantFrom(
  'grant_type',
  'password',
  'refresh_token',
  'username',
  'scope',
  'token',
  '',
  '%67rant_type',
  '__proto__',
)
const pair = fc.tuple(name, fc.constantFrom('=', '=', '=', '', '=='), value).map((parts) => parts.join(''))
const joint = fc.constantFrom('&', '&', '&', '&&', ';', '\n')

const validGrant = fc.oneof(
  fc.constantFrom(...passwords).map((password) => `grant_type=password&password=${password}`),
  fc.constant(`grant_type=refresh_token&refresh_token=${REFRESH}`),
)
const form = fc.oneof(
  { weight: 2, arbitrary: mutated(validGrant) },
  { weight: 1, arbitrary: fc.tuple(validGrant, joint, pair).map((parts) => parts.join('')) },
  {
    weight: 3,
    arbitrary: fc.tuple(fc.array(pair, { maxLength: 5 }), joint).map(([pairs, by]) => pairs.join(by)),
  },
)

const TYPE = 'application/x-www-form-urlencoded'
const type = fc.oneof(
  { weight: 4, arbitrary: fc.constant(`Content-Type: ${TYPE}\r\n`) },
  fc.constantFrom(
    ...[
      '',
      'Content-Type: application/json\r\n',
      `Content-Type: ${TYPE};charset=UTF-8\r\n`,
      'Content-Type:\r\n',
    ],
    ...[
      `Content-Type: ${TYPE}; charset=latin1\r\n`,
      `Content-Type: ${TYPE}x\r\n`,
      `Content-Type: ${TYPE};;\r\n`,
    ],
    ...[
      `Content-Type: ${TYPE}\r\nContent-Type: ${TYPE}\r\n`,
      `Content-Encoding: gzip\r\nContent-Type: ${TYPE}\r\n`,
    ],
  ),
)

const request = fc
  .record({
    path: fc.constantFrom(
      '/oauth/token',
      '/oauth/token',
      '/oauth/token?grant_type=password',
      '/oauth/revoke',
    ),
    type,
    form,
    framing: fc.constantFrom('length', 'length', 'chunked'),
    off: fc.constantFrom(0, 0, 0, 0, 0, 0, 0, -1, 1),
  })
  // Never revokes the live tokens: the other cases need them.
  .filter(({ path, form }) => path !== '/oauth/revoke' || !(form.includes(ACCESS) || form.includes(REFRESH)))
  .map(({ path, type, form, framing, off }) => {
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\n${type}`
    return framing === 'chunked'
      ? `${head}Transfer-Encoding: chunked\r\n\r\n${form.length.toString(16)}\r\n${form}\r\n0\r\n\r\n`
      : `${head}Content-Length: ${Math.max(0, form.length + off)}\r\n\r\n${form}`
  })

/** Whether the text contains a valid credential in any encoding. */
function knowsSecret(text: string): boolean {
  const bytes = text
    .replaceAll('+', ' ')
    .replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  const plain = Buffer.from(bytes, 'latin1').toString('utf8')
  return plain.includes(PASSWORD) || text.includes(REFRESH) || plain.includes(REFRESH)
}

/** Forms for the token endpoint. Only a form with the password or a refresh token gets tokens. */
export const forms: Target = {
  name: 'forms',
  settings: [CLEARTEXT, ENCRYPTED],
  cases: fc.record({ writes: inPieces(request), ending: endings }),
  async open(scenes) {
    const scene = await scenes.scripted()
    return async (item) => {
      const { responses, faults } = await playRequests(scene, item)
      const issued = responses.some(({ text }) => text.includes('access_token"'))
      return issued && !knowsSecret(item.writes.join(''))
        ? [...faults, 'tokens without a credential']
        : [...faults]
    }
  },
}
