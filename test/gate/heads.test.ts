import { join } from 'node:path'
import { expect, it } from 'vitest'
import { type ClassifyRules, classify } from '../../src/gate/classify.ts'
import type { Classified } from '../../src/http/admission.ts'
import type { RequestHead } from '../../src/http/exchange.ts'
import { runCases } from '../support/cases.ts'
import { type HeadPart, requestHead } from '../support/exchange.ts'
import { bytesOf, fieldsOf, refusalText, shownBytes } from '../support/shown-bytes.ts'

const RULES: ClassifyRules = {
  headerCaps: { maxHeaderSize: 16 * 1024, maxHeaderCount: 100 },
  revocationPath: undefined,
  browser: false,
  cors: undefined,
}

const classified = (part: HeadPart): Classified => classify(requestHead(part), RULES)

const latin1 = (shown: string): string => bytesOf(shown).toString('latin1')

const VERSIONS: Readonly<Record<string, RequestHead['version']>> = { '1.0': '1.0', '1.1': '1.1', '2': '2' }

/** A request as `METHOD target`. */
function startOf(shown: string): readonly [method: string, target: string] {
  const request = latin1(shown)
  const space = request.indexOf(' ')
  return [request.slice(0, space), request.slice(space + 1)]
}

/** A Host in each HTTP version, also beside an authority, and as the authority. */
const hosted = (host: string): readonly HeadPart[] => [
  { fields: ['Host', host] },
  { version: '1.0', fields: ['Host', host] },
  { version: '2', authority: 'device.example', fields: ['Host', host] },
  { version: '2', authority: host, fields: [] },
]

/** A target that stays as it is, byte for byte, is left out. */
function verdictOf(head: HeadPart) {
  const { fault, ambiguous, endpoint, target, host, framing } = classified(head)
  if (fault !== undefined) return { fault: `${refusalText(fault)}${ambiguous ? ' (closes)' : ''}` }
  const path = target === head.target ? [] : [shownBytes(target)]
  const body = framing === null ? [] : [framing === 'chunked' ? framing : `with ${framing} bytes`]
  return { is: [endpoint, ...path, ...(host === '' ? [] : [`of ${host}`]), ...body].join(' ') }
}

// A head of each of the versions, which are all judged alike.
runCases(join(import.meta.dirname, 'heads.txt'), {
  given: ['version', 'request', 'method', 'path', 'fields', 'upgrade', 'host'],
  results: ['is', 'fault'],
  play({ version = '1.1', request = 'GET /', method, path, fields, upgrade, host }) {
    if (host !== undefined) {
      const faults = hosted(latin1(host)).map((part) => classified(part))
      for (const found of faults)
        expect(found).toMatchObject({ fault: { kind: 'malformed' }, ambiguous: true })
      return { fault: 'malformed (closes)' }
    }
    const [usual, target] = startOf(request)
    const part = {
      method: method === undefined ? usual : latin1(method),
      target: path ?? target,
      ...(fields === undefined ? {} : { fields: fieldsOf(fields) }),
      upgrade: upgrade !== undefined,
    }
    const verdicts = version.split(' ').map((each) => {
      const known = VERSIONS[each] ?? expect.fail(`${each} is no version`)
      return verdictOf({ ...part, version: known, endsWithHead: known === '2' })
    })
    const [first = expect.fail('no version')] = verdicts
    for (const other of verdicts) expect(other).toEqual(first)
    return first
  },
})

const DEVICE = ['Host', 'device']

/** The bytes of a field name that are no letter or digit (RFC 9110 §5.6.2). To a CGI program each is a `_`. */
const PUNCTUATION = [..."!#$%&'*+-.^_`|~"]

it.each([
  ...['X-Forwarded-For', 'X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Forwarded-Anything', 'X-Real-IP'],
  ...['X-Request-Id', 'Content-Length', 'Transfer-Encoding'],
  // Fields of one hop, which Postern removes.
  ...['Keep-Alive', 'Proxy-Authorization', 'Proxy-Connection', 'HTTP2-Settings'],
])('H18 a twin of %s in any punctuation and case is malformed', (name) => {
  const mixed = [name.replace('-', '.').toUpperCase(), name.replace(/-(?!.*-)/, '~')]
  const twins = PUNCTUATION.filter((byte) => byte !== '-').map((byte) => name.replaceAll('-', () => byte))
  for (const twin of [...twins, ...mixed, name.replaceAll('-', '_').toLowerCase()])
    expect(classified({ fields: [...DEVICE, twin, '5'] }), twin).toMatchObject({
      fault: { kind: 'malformed' },
      ambiguous: true,
    })
})

it('H18 a name that only looks like a guarded one is none of its twins, and neither is the guarded name', () => {
  const names = [
    'X-Real-IP',
    'XRealIP',
    'X_Real',
    'X.Real.IPs',
    'X_Forwarded',
    'Contentlength',
    'Prox_y',
    '~',
  ]
  for (const name of names) expect(classified({ fields: [...DEVICE, name, '5'] }).fault, name).toBeUndefined()
})

it('H14 H94 C19 a method of 2000 letters is not allowed', () => {
  for (const version of ['1.1', '2'] as const)
    expect(classified({ version, method: 'X'.repeat(2000) })).toMatchObject({
      fault: { kind: 'method-not-allowed' },
      ambiguous: true,
    })
})
