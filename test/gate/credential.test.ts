import { describe, expect, it } from 'vitest'
import { createGate } from '../../src/gate/admit.ts'
import { type ClassifyRules, classify, createPublicPaths } from '../../src/gate/classify.ts'
import { createClientAddress } from '../../src/gate/client-address.ts'
import {
  type CredentialRules,
  type CredentialStores,
  credentialAnew,
  credentialFault,
  type JudgedExchange,
} from '../../src/gate/credential.ts'
import type { Identity, Presented } from '../../src/http/admission.ts'
import { compileAllow, type Scope } from '../../src/http/scope.ts'
import { createWindowTable } from '../../src/limits/window-table.ts'
import { gateRules } from '../support/admitted.ts'
import { stillClock } from '../support/clock.ts'
import { BareExchange, type HeadPart, requestHead } from '../support/exchange.ts'

const RULES: ClassifyRules = {
  headerCaps: { maxHeaderSize: 16 * 1024, maxHeaderCount: 100 },
  revocationPath: '/oauth/revoke',
  browser: true,
  cors: new Set(['https://shop.example']),
}
const ALL: CredentialRules = { findPublic: () => undefined, scopes: undefined }
const VALID: Identity = { kind: 'valid', grant: 'reader.c0ffee' }
const MISSING: Identity = { kind: 'refused', cause: 'missing' }

const of = (...fields: readonly string[]): readonly string[] => ['Host', 'device.example', ...fields]

/** A request whose credential came out as `identity`. */
function judged(part: HeadPart, identity?: Identity): JudgedExchange {
  const head = requestHead(part)
  const client = { address: '192.0.2.1', key: '192.0.2.1', peerTrusted: false, hops: 0, admitted: true }
  const found = { grant: undefined, scope: undefined, confined: false }
  return { head, classified: classify(head, RULES), client, identity, ...found }
}

const valid = (part: HeadPart): JudgedExchange => judged(part, VALID)

const SAME = ['Sec-Fetch-Site', 'same-origin']

it.each<[string, HeadPart, object | undefined]>([
  ['POST of the token endpoint', { method: 'POST', target: '/oauth/token' }, undefined],
  ['a GET of it', { target: '/oauth/token' }, { kind: 'method-not-allowed', allow: 'POST' }],
  ['a GET of the revocation', { target: '/oauth/revoke' }, { kind: 'method-not-allowed', allow: 'POST' }],
  ['a GET of the login', { target: '/oauth/login' }, undefined],
  ['a HEAD of the logout', { method: 'HEAD', target: '/oauth/logout' }, undefined],
  [
    'a PUT of the login',
    { method: 'PUT', target: '/oauth/login' },
    { kind: 'method-not-allowed', allow: 'GET, HEAD, POST' },
  ],
  ['a login from its page', { method: 'POST', target: '/oauth/login', fields: of(...SAME) }, undefined],
  ['a logout from its page', { method: 'POST', target: '/oauth/logout', fields: of(...SAME) }, undefined],
  ['a login that does not say whence', { method: 'POST', target: '/oauth/login' }, { kind: 'cross-origin' }],
  [
    'a login that no page sent',
    { method: 'POST', target: '/oauth/logout', fields: of('Sec-Fetch-Site', 'none') },
    { kind: 'cross-origin' },
  ],
  [
    'a preflight of any path',
    {
      method: 'OPTIONS',
      target: '/a',
      fields: of('Origin', 'https://shop.example', 'Access-Control-Request-Method', 'PUT'),
    },
    undefined,
  ],
])('H189 at the own endpoints, %s is judged without a credential', (_, part, expected) => {
  expect(credentialFault(judged(part), ALL)).toEqual(expected)
})

it.each<[Identity | undefined, object]>([
  [undefined, { kind: 'unauthorized', cause: 'missing' }],
  [MISSING, { kind: 'unauthorized', cause: 'missing' }],
  [
    { kind: 'refused', cause: 'expired' },
    { kind: 'unauthorized', cause: 'expired' },
  ],
  [{ kind: 'unavailable' }, { kind: 'store-unavailable' }],
  [{ ...MISSING, foreign: true }, { kind: 'cross-origin' }],
])('C11 a credential that came out as %j is refused so, but on a public path', (identity, expected) => {
  const rules = { ...ALL, findPublic: createPublicPaths(['/open']) }
  const closed = judged({ target: '/closed' }, identity)
  const open = judged({ target: '/open' }, identity)
  expect([credentialFault(closed, rules), closed.confined]).toEqual([expected, false])
  expect([credentialFault(open, rules), open.confined]).toEqual([undefined, true])
})

it('H204 a public path admits no Destination that is not public', () => {
  const rules = { ...ALL, findPublic: createPublicPaths(['/open/']) }
  const copy = (...destinations: readonly string[]): string | undefined => {
    const fields = of(...destinations.flatMap((each) => ['Destination', each]))
    return credentialFault(judged({ method: 'COPY', target: '/open/a', fields }, MISSING), rules)?.kind
  }
  expect([copy('/open/b'), copy('/closed'), copy('/open/b', '/open/c')]).toEqual([
    undefined,
    'unauthorized',
    'unauthorized',
  ])
})

describe('H193 the name of a grant', () => {
  const scopeOf = (allow?: Parameters<typeof compileAllow>[0]): Scope => ({
    name: 'reader',
    allows: allow === undefined ? undefined : compileAllow(allow),
    onTrial: false,
  })
  const by = (exchange: JudgedExchange, scope: Scope | undefined, publicPaths: readonly string[] = []) =>
    credentialFault(exchange, {
      findPublic: createPublicPaths(publicPaths),
      scopes: new Map(scope === undefined ? [] : [[scope.name, scope]]),
    })?.kind

  it('is not asked with `password`, and the request is that of its grant', () => {
    const request = valid({ method: 'POST' })
    expect(credentialFault(request, ALL)).toBeUndefined()
    expect(request).toMatchObject({ grant: 'reader.c0ffee', scope: undefined, confined: false })
  })

  it('may do everything without an allow, and nothing when it is gone', () => {
    const [all, gone] = [valid({ method: 'POST' }), valid({})]
    const scope = scopeOf()
    expect([by(all, scope), by(gone, undefined)]).toEqual([undefined, 'unauthorized'])
    expect(all).toMatchObject({ grant: 'reader.c0ffee', scope, confined: false })
    expect(gone).toMatchObject({ grant: 'reader.c0ffee', scope: undefined })
  })

  it('may do what its allow says, with fields that name no other path; the refused request is recorded as its own', () => {
    const [read, write] = [valid({}), valid({ method: 'POST' })]
    const scope = scopeOf('read')
    expect([by(read, scope), by(write, scope)]).toEqual([undefined, 'insufficient-scope'])
    expect(read).toMatchObject({ grant: 'reader.c0ffee', scope, confined: true })
    expect(write).toMatchObject({ grant: 'reader.c0ffee', scope: undefined, confined: false })
  })

  it('may do on a public path what everyone may, as nobody', () => {
    const request = valid({ method: 'POST', target: '/open' })
    expect(by(request, scopeOf('read'), ['/open'])).toBeUndefined()
    expect(request).toMatchObject({ grant: undefined, scope: undefined, confined: true })
  })

  it('opens a WebSocket only with UPGRADE in its allow', () => {
    const open = (methods: readonly string[]) => by(valid({ upgrade: true }), scopeOf([{ methods }]))
    expect([open(['GET']), open(['UPGRADE'])]).toEqual(['insufficient-scope', undefined])
  })

  it('H204 copies only to where its allow lets it', () => {
    const copy = (...destinations: readonly string[]) => {
      const fields = of(...destinations.flatMap((each) => ['Destination', each]))
      return by(
        valid({ method: 'COPY', target: '/a/b', fields }),
        scopeOf([{ methods: ['COPY'], paths: ['/a/'] }]),
      )
    }
    expect([copy(), copy('/a/c')]).toEqual([undefined, undefined])
    const everywhere = valid({ method: 'COPY', fields: of('Destination', '//else/x', 'Destination', '/') })
    expect([copy('/b'), copy('/a/c', '/a/d'), by(everywhere, scopeOf([{}]))]).toEqual(
      Array(3).fill('insufficient-scope'),
    )
  })
})

describe('H209 by the rules of a reload', () => {
  const anew = (presented: Presented | undefined, given: Partial<JudgedExchange>, browser = true) => {
    const request = { ...valid({}), grant: 'reader.c0ffee', ...given }
    return credentialAnew({ ...request, head: { ...request.head, presented } }, { browser })
  }
  const session: Presented = { kind: 'session', id: 's' }
  const foreign = requestHead({ fields: of('Sec-Fetch-Site', 'same-site') })

  it('a credential holds that held when the request came', () => {
    expect(anew({ kind: 'token', token: 't' }, { head: foreign })).toEqual(VALID)
    expect(anew(session, {})).toEqual(VALID)
    expect(anew({ kind: 'none', cause: 'missing' }, { identity: { kind: 'unavailable' } })).toEqual({
      kind: 'unavailable',
    })
  })

  it('one that did not admit the request is none, and neither is a session when browsers may not log in', () => {
    expect(anew({ kind: 'token', token: 't' }, { grant: undefined })).toEqual(MISSING)
    expect(anew(session, {}, false)).toEqual(MISSING)
  })

  it('a session holds only for a request of this origin', () => {
    expect(anew(session, { head: foreign })).toEqual({ ...MISSING, foreign: true })
  })
})

describe('H189 a cookie of a session', () => {
  const sessions: CredentialStores['sessions'] = {
    has: (id) => id === 'live',
    identify: (id) => (id === 'live' ? VALID : MISSING),
  }

  /** What a gate finds about a request with these fields: the type of its window, and its grant or its refusal. */
  function found(fields: readonly string[], part: HeadPart = {}, browser = true): string {
    const clock = stillClock()
    const limit = { requests: 9, window: 60_000, per: 'client' } as const
    const table = createWindowTable(limit, { clock, maxKeys: 10 })
    const admit = createGate({
      clock,
      tables: { api: table, oauth: table, browser: table },
      sessions,
      identify: () => ({ kind: 'valid', grant: 'of a token' }),
      settings: { gate: gateRules(limit, { browser }), clientOf: createClientAddress([]) },
    })
    const exchange = new BareExchange(requestHead({ ...part, fields: of(...fields) }))
    expect(admit(exchange)).toBe(exchange)
    const { endpoint, grant, refusal } = exchange
    const why = refusal?.kind === 'unauthorized' ? refusal.cause : refusal?.kind
    return `${endpoint} ${grant ?? why}`
  }

  const LIVE = ['Cookie', '__Host-postern=live']
  const OVER = ['Cookie', '__Host-postern=over']
  const ELSEWHERE = ['Sec-Fetch-Site', 'same-site']
  const TYPED = ['Sec-Fetch-Site', 'none']

  it('counts for requests of this origin, those that the user typed, and those that only read and say nothing', () => {
    const all = [
      found([...LIVE, ...SAME], { method: 'PUT' }),
      found([...LIVE, ...TYPED]),
      found([...LIVE, ...TYPED], { method: 'POST' }),
      found(LIVE),
      found(LIVE, { method: 'HEAD' }),
      found([...LIVE, 'Authorization', 'Basic YTpi']),
    ]
    expect(all).toEqual(all.map(() => 'browser reader.c0ffee'))
  })

  it('is of another origin otherwise, and then counts as a request of the API', () => {
    const all = [
      found([...LIVE, ...ELSEWHERE]),
      found(LIVE, { method: 'POST' }),
      found(LIVE, { upgrade: true }),
    ]
    expect(all).toEqual(all.map(() => 'api cross-origin'))
  })

  it('is none if the session is over, or browsers may not log in', () => {
    expect([found([...OVER, ...SAME]), found([...LIVE, ...SAME], {}, false)]).toEqual([
      'api missing',
      'api missing',
    ])
  })

  it('yields to a bearer token, also to a malformed one', () => {
    expect([
      found([...LIVE, ...SAME, 'Authorization', 'Bearer shown']),
      found([...LIVE, ...SAME, 'Authorization', 'Bearer a b']),
    ]).toEqual(['api of a token', 'api malformed'])
  })

  it('does not matter at the own endpoints', () => {
    expect(found([...LIVE, ...SAME], { method: 'POST', target: '/oauth/login' })).toBe('oauth undefined')
  })
})
