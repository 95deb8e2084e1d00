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

const shown = fc.oneof(
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
    shown,
    before,
  )
  .map(([name, ...value]) => `${name}:${value.join('')}`)

/** What `listen.max_header_size` is by default (bytes). */
const LARGEST_HEAD = 16 * 1024

const request = fc
  .tuple(fc.oneof({ weight: 8, arbitrary: line.map((one) => [one]) }, fc.array(line, { maxLength: 3 })))
  .map(([lines]) => `${START}${lines.join('\r\n')}`)
  .map((head) => `${head}\r\n\r\n`)
  // A larger head is refused for its size, whatever it shows.
  .filter((head) => head.length <= LARGEST_HEAD)

/** C10, written anew from its words: one field, the scheme in any case, spaces, the token and nothing else. */
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

/** Every way of showing a token; only the right one gets in. */
export const bearer: Target = {
  name: 'bearer',
  settings: [CLEARTEXT, ENCRYPTED],
  cases: fc.record({ writes: request.map((text) => [text]), ending: fc.constant('end' as const) }),
  async open(scenes) {
    const scene = await scenes.scripted()
    return async (item) => {
      const { answers, faults } = await playRequests(scene, item)
      const admitted = answers.some(({ status }) => status === 200)
      const refused = answers.some(({ status }) => status === 401)
      return admits(item.writes.join(''))
        ? [...faults, ...(admitted ? [] : ['a good token is refused'])]
        : [...faults, ...(refused && !admitted ? [] : ['a bad token is admitted, or something else'])]
    }
  },
}
