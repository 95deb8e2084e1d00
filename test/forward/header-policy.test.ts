import fc from 'fast-check'
import { expect, it } from 'vitest'
import { requestKeeps } from '../../src/config/header-field.ts'
import { type RequestFieldSettings, requestFields, requestLines } from '../../src/forward/request-fields.ts'
import { responseHead } from '../../src/forward/response-fields.ts'
import type { RequestHead } from '../../src/http/exchange.ts'
import { connectionMembers, fieldValues, isHopByHop } from '../../src/http/fields.ts'
import { limitFields } from '../../src/http/limit-fields.ts'
import { admitted, PLAIN } from '../support/admitted.ts'
import { requestHead } from '../support/exchange.ts'
import { NO_FORWARDING } from '../support/sidecar.ts'

const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]
const PROXY_CREDENTIALS = ['proxy-authenticate', 'proxy-authorization', 'proxy-authentication-info', 'proxy']
const FORWARDING = [
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-forwarded-user',
  'x-real-ip',
]
const SPECIAL = [
  ...HOP_BY_HOP,
  ...PROXY_CREDENTIALS,
  ...FORWARDING,
  'authorization',
  'expect',
  'http2-settings',
  'host',
  'content-length',
  'via',
  'x-request-id',
  'cookie',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
]
const ORDINARY = [
  'accept',
  'x-own',
  'x-other',
  'user-agent',
  'content-type',
  'set-cookie',
  'etag',
  '__proto__',
  'constructor',
]

const name = fc.constantFrom(...SPECIAL, ...ORDINARY).chain((lower) => fc.mixedCase(fc.constant(lower)))
const value = fc.oneof(
  fc.constantFrom('evil.example', '192.0.2.66', 'a, b', ''),
  fc.stringMatching(/^[!-~]{0,12}$/),
)
/** `Connection` with arbitrary names. */
const connection = fc
  .array(fc.constantFrom(...SPECIAL, ...ORDINARY, 'keep-alive', 'close'), { maxLength: 4 })
  .chain((names) => fc.mixedCase(fc.constant(['Connection', names.join(' , ')].join('\n'))))
  .map((pair) => pair.split('\n') as [string, string])

const anyFields = fc
  .array(fc.oneof({ weight: 6, arbitrary: fc.tuple(name, value) }, { weight: 1, arbitrary: connection }), {
    maxLength: 14,
  })
  .map((pairs) => pairs.flat())

const pairsOf = (fields: readonly string[]): [string, string][] =>
  fields.flatMap((field, i) => (i % 2 === 0 ? [[field, fields[i + 1] ?? ''] as [string, string]] : []))

const nominatedBy = (fields: readonly string[]): string[] =>
  fieldValues(fields, 'connection').flatMap((list) =>
    list.split(',').map((item) => item.trim().toLowerCase()),
  )

/** Applies the policy to a request with this head that has these fields in place of its own. */
function fieldsFor(
  head: RequestHead,
  fields: readonly string[],
  settings: RequestFieldSettings,
  trusted: readonly string[] = [],
): string[] {
  const request = admitted(head, trusted)
  const { framing } = request.classified
  return requestFields(Object.assign(request, { head: requestHead({ ...head, fields }) }), framing, settings)
}

/** Applies the policy to these fields. The framing and the address of the request come from the gate. */
function project(fields: readonly string[], over: Partial<RequestHead>, trusted: readonly string[]) {
  return fieldsFor(
    requestHead({ ...over }),
    fields,
    { ...PLAIN, added: ['X-Added', 'here'], set: new Set(['x-added']) },
    trusted,
  )
}

it('C22 no connection field and no credential of a client reaches the device', () => {
  fc.assert(
    fc.property(anyFields, fc.boolean(), (fields, trusted) => {
      const out = project(fields, {}, trusted ? ['192.0.2.1'] : [])
      const names = pairsOf(out).map(([field]) => field.toLowerCase())
      for (const lower of [
        ...HOP_BY_HOP,
        ...PROXY_CREDENTIALS,
        'authorization',
        'expect',
        'http2-settings',
      ]) {
        expect(names).not.toContain(lower)
      }
      for (const once of ['host', 'via', 'x-request-id', 'x-forwarded-for', 'x-added']) {
        expect(
          names.filter((field) => field === once),
          once,
        ).toHaveLength(1)
      }
      expect(names.filter((field) => field === 'content-length')).toEqual([])
      expect(fieldValues(out, 'host')).toEqual(['device.example'])
      expect(fieldValues(out, 'x-request-id')).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/)])
      expect(fieldValues(out, 'via')[0]).toMatch(/1\.1 postern$/)
    }),
    { numRuns: 500 },
  )
})

it('C22 no field that Connection names reaches the device, unless the sidecar itself sends it', () => {
  fc.assert(
    fc.property(anyFields, (fields) => {
      const out = pairsOf(project(fields, {}, ['192.0.2.1'])).map(([field]) => field.toLowerCase())
      const ours = [
        'host',
        'via',
        'x-request-id',
        'x-forwarded-for',
        'x-forwarded-proto',
        'x-forwarded-host',
        'x-forwarded-port',
      ]
      for (const named of nominatedBy(fields)) if (!ours.includes(named)) expect(out).not.toContain(named)
      for (const own of ours) expect(out).toContain(own)
    }),
    { numRuns: 500 },
  )
})

it('C22 an untrusted peer cannot influence a forwarding field', () => {
  fc.assert(
    fc.property(anyFields, (fields) => {
      const forwarding = pairsOf(project(fields, {}, [])).filter(([field]) =>
        FORWARDING.includes(field.toLowerCase()),
      )
      expect(forwarding).toEqual([
        ['X-Forwarded-For', '192.0.2.1'],
        ['X-Forwarded-Proto', 'http'],
        ['X-Forwarded-Host', 'device.example'],
        ['X-Forwarded-Port', '8443'],
      ])
    }),
    { numRuns: 500 },
  )
})

it('C21 all other fields arrive unchanged: order, casing, repeats, values', () => {
  fc.assert(
    fc.property(anyFields, (fields) => {
      const ordinary = ([field]: [string, string]) => ORDINARY.includes(field.toLowerCase())
      const nominated = nominatedBy(fields)
      const expected = pairsOf(fields).filter(
        (pair) => ordinary(pair) && !nominated.includes(pair[0].toLowerCase()),
      )
      expect(pairsOf(project(fields, {}, [])).filter(ordinary)).toEqual(expected)
    }),
    { numRuns: 500 },
  )
})

it('C22 the Content-Length is sent once, with the value of the gate, regardless of the fields', () => {
  fc.assert(
    fc.property(anyFields, fc.nat(), (fields, length) => {
      const head = requestHead({ method: 'POST', fields: ['Host', 'x', 'Content-Length', String(length)] })
      const out = fieldsFor(head, fields, PLAIN)
      expect(fieldValues(out, 'content-length')).toEqual([String(length)])
    }),
  )
})

it('C22 upstream.headers and upstream.host override all fields of the client', () => {
  fc.assert(
    fc.property(anyFields, (fields) => {
      const head = requestHead()
      const settings = {
        ...PLAIN,
        host: 'inside.local:80',
        added: ['Authorization', 'Basic x', 'X-Own', 'fixed'],
        set: new Set(['authorization', 'x-own']),
      }
      const out = fieldsFor(head, fields, settings)
      expect(fieldValues(out, 'host')).toEqual(['inside.local:80'])
      expect(fieldValues(out, 'authorization')).toEqual(['Basic x'])
      expect(fieldValues(out, 'x-own')).toEqual(['fixed'])
      expect(fieldValues(out, 'x-forwarded-host')).toEqual(['device.example'])
    }),
  )
})

it('C22 C16 no connection field and no rate-limit field of a device reaches the client, and those of the sidecar occur once', () => {
  const limitNames = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']
  fc.assert(
    fc.property(anyFields, fc.constantFrom(200, 103, 204, 304, 401, 500), (fields, status) => {
      const head = requestHead()
      const settings = {
        origin: 'http://127.0.0.1:8080',
        host: undefined,
        names: [],
        rewrite: false,
        replaced: limitNames,
        passes: undefined,
        added: undefined,
      }
      const admission = admitted(head)
      const kept = responseHead({ status, reason: '', fields, remembered: false }, admission, settings).fields
      const out = pairsOf([...kept, ...limitFields(admission)])
      const names = out.map(([field]) => field.toLowerCase())
      for (const lower of HOP_BY_HOP) expect(names).not.toContain(lower)
      for (const lower of limitNames) expect(names.filter((field) => field === lower)).toHaveLength(1)
      expect(out.slice(-3)).toEqual(pairsOf(limitFields(admission)))
      const nominated = nominatedBy(fields)
      const ordinary = ([field]: [string, string]) => ORDINARY.includes(field.toLowerCase())
      expect(out.filter(ordinary)).toEqual(
        pairsOf(fields).filter((pair) => ordinary(pair) && !nominated.includes(pair[0].toLowerCase())),
      )
    }),
    { numRuns: 500 },
  )
})

it('C22 isHopByHop depends only on the name, and connectionMembers ignores case', () => {
  const fields = ['connection', 'X-A, x-b', 'CONNECTION', ',,  x-C ']
  const options = fieldValues(fields, 'connection').flatMap(connectionMembers)
  expect(options).toEqual(['x-a', 'x-b', 'x-c'])
  for (const name of [...HOP_BY_HOP, 'te', 'upgrade', 'proxy-anything'])
    expect([name, isHopByHop(name)]).toEqual([name, true])
  for (const name of ['x-d', 'accept', '', 'proxy-status', 'x'])
    expect([name, isHopByHop(name)]).toEqual([name, false])
})

it('H172 the text that is kept with a head belongs to its settings, with and without a request id in it', () => {
  const request = admitted(requestHead())
  const [full, bare] = [PLAIN, { ...PLAIN, keeps: requestKeeps(NO_FORWARDING), claims: false }]
  const lines = (settings: RequestFieldSettings, requestId: string): string =>
    requestLines(Object.assign(request, { requestId }), settings) ?? ''
  for (const id of ['first', 'second']) {
    expect([id, lines(full, id)]).toEqual([
      id,
      expect.stringMatching(new RegExp(`Via:.*\nX-Request-Id: ${id}\r\n$`, 's')),
    ])
    for (let i = 0; i < 2; i += 1) expect(lines(bare, id)).not.toMatch(/via|x-/i)
  }
  expect(lines(bare, 'a')).toBe(lines(bare, 'b'))
})
