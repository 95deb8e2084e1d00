import fc from 'fast-check'
import { ACCESS, REFRESH } from '../case.ts'
import { playRequests } from '../requests.ts'
import { CLEARTEXT, ENCRYPTED, type Target } from '../target.ts'

const START = 'GET /plain HTTP/1.1\r\nHost: x\r\n'

const scheme = fc.constantFrom(
  'Bearer',
  'bearer',
  'BEARER',
  'bEaReR',
  'Basic',
  'Bearer:',
  'Bear',
  '',
  'Bearer Bearer',
  'DPoP',
)
const gap = fc.constantFrom(' ', ' ', ' ', '  ', '\t', ' \t', '', '   ', ',')
const before = fc.constantFrom('', ' ', ' ', '\t', '  ')

const damage = fc.oneof(
  fc.nat(ACCESS.length - 1).map((at) => (token: string) => token.slice(0, at) + token.slice(at + 1)),
  fc.tuple(fc.nat(ACCESS.length), fc.constantFrom(...'=_.~+/-aZ0 ,;"%\x80\xff')).map(
    ([at, sign]) =>
      (token: string) =>
        token.slice(0, at) + sign + token.slice(at),
  ),
  fc.constant((token: string) => token.toLowerCase()),
  fc.constant((token: string) => `${token}${token}`),
)

const presented = fc.oneof(
  { weight: 4, arbitrary: fc.constant(ACCESS) },
  { weight: 2, arbitrary: damage.map((change) => change(ACCESS)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(REFRESH, '', 'x', '=', `"${ACCESS}"`, `${ACCESS}=`, 'a'.repeat(8192)),
  },
  { weight: 1, arbitrary: fc.stringMatching(/^[ -~]{0,50}$/) },
)

const line = fc
  .tuple(
    fc.constantFrom('Authorization', 'authorization', 'AUTHORIZATION'),
    before,
    scheme,
    gap,
    presented,
    before,
  )
  .map(([name, ...value]) => `${name}:${value.join('')}`)

/** The largest head (bytes). */
const MAX_HEAD_SIZE = 16 * 1024

const request = fc
  .tuple(fc.oneof({ weight: 8, arbitrary: line.map((one) => [one]) }, fc.array(line, { maxLength: 3 })))
  .map(([lines]) => `${START}${lines.join('\r\n')}`)
  .map((head) => `${head}\r\n\r\n`)
  // A larger head is refused for its size, with any token.
  .filter((head) => head.length <= MAX_HEAD_SIZE)

/** An independent implementation of C10: one field, the scheme in any case, spaces, the token and nothing else. */
function admits(head: string): boolean {
  if (!head.startsWith(START) || !head.endsWith('\r\n\r\n')) return false
  const values = head
    .slice(START.length)
    .split('\r\n')
    .filter((line) => /^authorization:/i.test(line))
    .map((line) => line.slice(line.indexOf(':') + 1).replace(/^[ \t]+|[ \t]+$/g, ''))
  const [scheme = '', ...rest] = (values[0] ?? '').split(' ')
  return (
    values.length === 1 && scheme.toLowerCase() === 'bearer' && rest.join(' ').replace(/^ +/, '') === ACCESS
  )
}

/** All forms of a credential. Only the valid one is admitted. */
export const bearer: Target = {
  name: 'bearer',
  settings: [CLEARTEXT, ENCRYPTED],
  cases: fc.record({ writes: request.map((text) => [text]), ending: fc.constant('end' as const) }),
  async open(scenes) {
    const scene = await scenes.scripted()
    return async (item) => {
      const { responses, faults } = await playRequests(scene, item)
      const admitted = responses.some(({ status }) => status === 200)
      const refused = responses.some(({ status }) => status === 401)
      return admits(item.writes.join(''))
        ? [...faults, ...(admitted ? [] : ['a valid token is refused'])]
        : [...faults, ...(refused && !admitted ? [] : ['an invalid token does not get a 401'])]
    }
  },
}
