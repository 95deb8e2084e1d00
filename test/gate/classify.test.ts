import { METHODS } from 'node:http'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type ClassifyRules, classify, createPublicPaths, readsSignedIn } from '../../src/gate/classify.ts'
import type { Classified } from '../../src/http/admission.ts'
import type { RequestHead } from '../../src/http/exchange.ts'
import { fieldValues } from '../../src/http/fields.ts'
import { type HeadPart, requestHead } from '../support/exchange.ts'
import { anyCodePoint } from '../support/random.ts'

const rules: ClassifyRules = {
  headerCaps: { maxHeaderSize: 16 * 1024, maxHeaderCount: 100 },
  revocationPath: undefined,
  browser: false,
  cors: undefined,
}

const classified = (over: HeadPart): Classified => classify(requestHead(over), rules)

const anyText = fc.oneof(fc.string({ unit: anyCodePoint, maxLength: 30 }), fc.string({ maxLength: 30 }))

const fieldName = fc.oneof(
  fc.constantFrom('Host', 'host', 'Content-Length', 'Transfer-Encoding', 'Expect', 'Upgrade', 'Connection'),
  fc.constantFrom('Authorization', 'X_Forwarded_For', 'content_length', 'X-Odd_One', '__proto__', ''),
  anyText,
)

const fieldValue = fc.oneof(
  fc.constantFrom('device.example', 'a.example', '5', '05', '+1', '0x1', '1, 1', 'chunked', 'gzip, chunked'),
  fc.constantFrom('Chunked', '100-continue', 'websocket', 'h2c', 'close', '', ' '),
  anyText,
)

/** Paths made of pieces that can disguise the path of the token endpoint. */
const path = fc
  .array(
    fc.constantFrom(
      '/',
      'oauth',
      'token',
      '/oauth/token',
      '%6f',
      '%2F',
      '..',
      '.',
      ';x',
      '?',
      '#',
      '\\',
      '%00',
      'TOKEN',
      '/OAuth/Token',
      ' ',
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(''))

const METHODS_TRIED = ['GET', 'GET', 'GET', 'GET', 'POST', 'PUT', 'OPTIONS', 'TRACE', 'CONNECT', 'get', '']

const anyPart: fc.Arbitrary<HeadPart> = fc.record({
  version: fc.constantFrom('1.0' as const, '1.1' as const, '2' as const),
  secure: fc.boolean(),
  method: fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...METHODS_TRIED) },
    { weight: 1, arbitrary: anyText },
  ),
  target: fc.oneof(
    path,
    path.map((tail) => `/${tail}`),
    path.map((tail) => `http://device.example${tail}`),
    fc.constantFrom(
      '*',
      '',
      'http://',
      'HTTPS://a.example',
      'device.example:443',
      'http://u:p@device.example/',
    ),
    anyText,
  ),
  authority: fc.option(fc.constantFrom('device.example', 'a.example', ''), { nil: undefined }),
  fields: fc.array(fc.tuple(fieldName, fieldValue), { maxLength: 8 }).map((pairs) => pairs.flat()),
  peer: fc.constantFrom('192.0.2.1', ''),
  localPort: fc.constant(8443),
  upgrade: fc.boolean(),
  endsWithHead: fc.boolean(),
})

const anyHead = anyPart.map(requestHead)

it('C20 classify never throws', () => {
  fc.assert(
    fc.property(anyHead, (head) => {
      const { endpoint } = classify(head, rules)
      expect(['api', 'oauth']).toContain(endpoint)
    }),
    { numRuns: 5000 },
  )
})

it('C1 only the exact path is the token endpoint, with any query', () => {
  fc.assert(
    fc.property(
      path.map((tail) => `/${tail}`),
      (target) => {
        const { endpoint } = classified({ target })
        expect(endpoint).toBe(target.split('?')[0] === '/oauth/token' ? 'oauth' : 'api')
      },
    ),
    {
      numRuns: 5000,
      examples: [
        ['/oauth/token'],
        ['/oauth/token?'],
        ['/oauth/token?/../x'],
        ['/oauth/token/'],
        ['/OAUTH/TOKEN'],
      ],
    },
  )
})

it('C21 a target in origin form is kept byte for byte', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map((c) => String.fromCharCode(c)) }),
      (text) => {
        const target = `/${text.replaceAll('#', '')}`
        expect(classified({ target })).toMatchObject({ target, fault: undefined })
      },
    ),
    { numRuns: 1000 },
  )
})

it('C21 a target in absolute form becomes its origin form', () => {
  const at = (target: string) => classified({ target })
  expect(at('http://device.example/a?b')).toMatchObject({ target: '/a?b', fault: undefined })
  expect(at('HTTPS://Device.Example')).toMatchObject({ target: '/', fault: undefined })
  expect(at('http://device.example?x=/')).toMatchObject({ target: '/?x=/', fault: undefined })
  expect(at('http://device.example/oauth/token')).toMatchObject({ endpoint: 'oauth', fault: undefined })
  expect(at('http://other.example/')).toMatchObject({ fault: { kind: 'malformed' } })
  expect(at('http://user@device.example/')).toMatchObject({ fault: { kind: 'malformed' } })
  expect(at('ftp://device.example/')).toMatchObject({ fault: { kind: 'malformed' } })
  expect(at('//device.example/')).toMatchObject({ target: '//device.example/', fault: undefined })
})

/** A head without a fault must satisfy at least this, so that any two parsers agree about it. */
function expectUnambiguous(head: RequestHead, { target, host, framing }: Classified): void {
  expect(target).toMatch(/^\/[\x21-\x7e]*$/)
  expect(target).not.toContain('#')
  expect(METHODS).toContain(head.method)
  expect(['TRACE', 'CONNECT']).not.toContain(head.method)
  const hosts = [
    ...fieldValues(head.fields, 'host'),
    ...(head.authority === undefined ? [] : [head.authority]),
  ]
  expect(new Set(hosts.map((name) => name.toLowerCase())).size).toBeLessThanOrEqual(1)
  expect(fieldValues(head.fields, 'host').length).toBeLessThanOrEqual(1)
  if (head.version !== '1.0') expect(host).not.toBe('')
  expect(host).not.toMatch(/[\s/@?#\\]/)
  const lengths = fieldValues(head.fields, 'content-length')
  const codings = fieldValues(head.fields, 'transfer-encoding')
  expect(lengths.length + codings.length).toBeLessThanOrEqual(1)
  if (lengths.length > 0) expect(lengths[0]).toMatch(/^\d{1,15}$/)
  if (lengths.length > 0 && !(head.version === '2' && framing === null))
    expect(framing).toBe(Number(lengths[0]))
  if (codings.length > 0)
    expect([head.version, codings[0]?.toLowerCase(), framing]).toEqual(['1.1', 'chunked', 'chunked'])
  for (let i = 0; i < head.fields.length; i += 2) {
    expect(head.fields[i]?.toLowerCase()).not.toMatch(
      /^(?:x_forwarded|content_length|transfer_encoding|x_real)/,
    )
  }
}

it('C20 a head without a fault is unambiguous: one path, one host, one framing', () => {
  let passed = 0
  fc.assert(
    fc.property(anyHead, (head) => {
      const found = classify(head, rules)
      if (found.fault !== undefined) return
      passed += 1
      expectUnambiguous(head, found)
    }),
    { numRuns: 20_000 },
  )
  expect(passed, 'too few heads without a fault to test anything').toBeGreaterThan(100)
})

it.each([
  [
    'OPTIONS *',
    { method: 'OPTIONS', target: '*', fields: ['Host', 'a', 'Transfer-Encoding', 'gzip, chunked'] },
  ],
  [
    'a hundred and one fields',
    { fields: [...Array<string>(200).fill('x'), 'Host', 'a', 'Content-Length', '1'.repeat(16)] },
  ],
])(
  'C20 ambiguous framing closes the connection, even of a request that is refused for another reason: %s',
  (_name, part) => {
    const { fault, ambiguous } = classified(part)
    expect(fault?.kind).not.toBe('malformed')
    expect(ambiguous).toBe(true)
  },
)

it('C20 the connection closes behind a head that two programs could read differently, or with a method that it does not know', () => {
  const parts: readonly HeadPart[] = [{ target: 'x' }, { method: 'TRACE' }]
  expect(parts.map((part) => classified(part).ambiguous)).toEqual([true, true])
  const clear: readonly HeadPart[] = [
    {},
    { method: 'OPTIONS', target: '*' },
    { fields: ['Host', 'a', 'Expect', 'b'] },
  ]
  expect(clear.map((part) => classified(part).ambiguous)).toEqual([false, false, false])
})

it('a preflight is one of Postern only for the origins of `cors`', () => {
  const origin = 'https://shop.example'
  const head = (): RequestHead =>
    requestHead({
      method: 'OPTIONS',
      fields: ['Host', 'a', 'Origin', origin, 'Access-Control-Request-Method', 'PUT'],
    })
  expect(classify(head(), { ...rules, cors: new Set([origin]) })).toMatchObject({
    ownEndpoint: 'preflight',
    endpoint: 'api',
  })
  for (const cors of [undefined, new Set(['https://other.example'])])
    expect(classify(head(), { ...rules, cors }).ownEndpoint).toBeUndefined()
})

it('C20 both caps on a head hold to the byte and to the field, the authority of HTTP/2 included', () => {
  const capped = (maxHeaderSize: number, maxHeaderCount: number, part: HeadPart = {}) =>
    classify(requestHead({ fields: ['Host', 'a'], ...part }), {
      ...rules,
      headerCaps: { maxHeaderSize, maxHeaderCount },
    }).fault
  expect([capped(9, 1), capped(11, 1, { version: '2', authority: 'a', fields: ['B', ''] })]).toEqual([
    undefined,
    undefined,
  ])
  const tooLarge = { kind: 'header-too-large' }
  expect([capped(8, 1), capped(9, 0)]).toEqual([tooLarge, tooLarge])
  expect(capped(6, 1, { version: '2', authority: 'abc', fields: [] })).toEqual(tooLarge)
})

it('H188 the paths of the login are own endpoints only with browser.login, and no other path is', () => {
  const endpointsAt = (browser: boolean) =>
    ['/oauth/token', '/oauth/login', '/oauth/logout', '/oauth/other'].map((target) => {
      const { ownEndpoint, endpoint } = classify(requestHead({ target }), { ...rules, browser })
      return `${ownEndpoint} ${endpoint}`
    })
  expect(endpointsAt(true)).toEqual(['token oauth', 'login oauth', 'logout oauth', 'undefined api'])
  expect(endpointsAt(false)).toEqual(['token oauth', 'undefined api', 'undefined api', 'undefined api'])
})

it('a head is classified once for the same rules, and again for those of a reload', () => {
  const head = requestHead()
  const first = classify(head, rules)
  expect(classify(head, rules)).toBe(first)
  const next = classify(head, { ...rules, headerCaps: { maxHeaderSize: 1, maxHeaderCount: 1 } })
  expect(next.fault).toEqual({ kind: 'header-too-large' })
})

it('H169 without a token a request is signed in only if it reads one page that an entry says so of', () => {
  const findPublic = createPublicPaths(['/open', { path: '/page' }])
  const isSignedIn = (part: HeadPart): boolean => {
    const head = requestHead({ target: '/page', ...part })
    return readsSignedIn({ head, classified: classify(head, rules) }, findPublic)
  }
  const of = (...fields: readonly string[]): readonly string[] => ['Host', 'device.example', ...fields]
  expect(
    [{}, { method: 'HEAD' }, { target: '/page?a' }, { fields: of('Content-Length', '0') }].map(isSignedIn),
  ).toEqual(Array(4).fill(true))
  expect(
    [
      { method: 'POST' },
      { upgrade: true },
      { fields: of('Content-Length', '1') },
      { fields: of('Transfer-Encoding', 'chunked') },
      { target: '/open' },
      { target: '/other' },
      { fields: of('Destination', '/page') },
      { fields: of('X-Original-URL', '/page') },
    ].map(isSignedIn),
  ).toEqual(Array(8).fill(false))
})
