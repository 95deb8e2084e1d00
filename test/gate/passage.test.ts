import { expect, it } from 'vitest'
import { createGate } from '../../src/gate/admit.ts'
import { createClientAddress } from '../../src/gate/client-address.ts'
import { atGate } from '../../src/gate/gate-exchange.ts'
import { createLiveExchanges } from '../../src/gate/live-exchanges.ts'
import { createPassage, type PassageDependencies } from '../../src/gate/passage.ts'
import type { Exchange, ForwardListener } from '../../src/http/exchange.ts'
import type { LocalResponse, Refusal } from '../../src/http/refusal.ts'
import { createWindowTable } from '../../src/limits/window-table.ts'
import { nextTurn } from '../../src/system/clock.ts'
import type { TokenLookup } from '../../src/tokens/look-up.ts'
import { gateRules, NO_SESSIONS } from '../support/admitted.ts'
import { stillClock } from '../support/clock.ts'
import { BareExchange, type HeadPart, requestHead } from '../support/exchange.ts'

const TOKEN = ['Host', 'device.example', 'Authorization', 'Bearer shown']
const VALID: TokenLookup = { kind: 'valid', grant: 'c0ffee' }
const LOGIN: HeadPart = { method: 'POST', target: '/oauth/token' }

/** A client that notes the grants that it is told of. */
function noting(grants: string[]): { grant: string | undefined } {
  return {
    get grant() {
      return grants.at(-1)
    },
    set grant(grant) {
      if (grant !== undefined) grants.push(grant)
    },
  }
}

/** An exchange that notes whether a response closes its connection, and the grants that its account is told of. */
class Asked extends BareExchange {
  readonly closes: boolean[] = []
  readonly grants: string[] = []
  override memory = {
    mayHold: () => true,
    hold: () => {},
    client: noting(this.grants),
  }
  /** A part of its body has not been read. */
  leavesBody = false

  override get unread(): boolean {
    return this.leavesBody
  }

  override respond(response: LocalResponse, close = false): void {
    if (!this.answered) this.closes.push(close)
    super.respond(response)
  }
}

interface Site {
  readonly identify?: () => TokenLookup | Promise<TokenLookup>
  readonly upstream?: (exchange: Exchange, listener: ForwardListener) => void
  readonly ownEndpoint?: PassageDependencies['ownEndpoints']['token']
  readonly browser?: boolean
}

/** A passage behind a real gate. */
function site({
  identify = () => VALID,
  upstream = (exchange) => exchange.respond({ status: 200, fields: [], body: '' }),
  ownEndpoint = () => expect.fail('unexpected call'),
  browser = false,
}: Site = {}) {
  const clock = stillClock()
  const live = createLiveExchanges()
  const limit = { requests: 100, window: 60_000, per: 'client' } as const
  const windows = createWindowTable(limit, { clock, maxKeys: 10 })
  const settings = {
    gate: gateRules(limit, { browser }),
    clientOf: createClientAddress([]),
    config: { statusCodes: 'http', realm: 'device' } as const,
  }
  const tables = { api: windows, oauth: windows, browser: windows }
  const records: Exchange[] = []
  const unrecorded: Refusal[] = []
  const bugs: unknown[] = []
  const { request, refusalMessage } = createPassage({
    admit: createGate({ clock, tables, sessions: NO_SESSIONS, identify, settings }),
    ownEndpoints: {
      token: ownEndpoint,
      revocation: ownEndpoint,
      login: ownEndpoint,
      logout: ownEndpoint,
      preflight: ownEndpoint,
      redirect: ownEndpoint,
    },
    device: { upstream },
    live,
    clock,
    settings,
    loginPageFor: (_exchange, _refusal, response) => ({ ...response, body: 'a page' }),
    records: [(exchange) => records.push(exchange)],
    onUnrecordedRefusal: (refusal) => unrecorded.push(refusal),
    onBug: (bug) => bugs.push(bug),
  })
  return {
    clock,
    live,
    records,
    unrecorded,
    bugs,
    refusalMessage,
    pass(part: HeadPart = { fields: TOKEN }, change: (exchange: Asked) => void = () => {}): Asked {
      const exchange = new Asked(requestHead(part))
      change(exchange)
      request(exchange)
      return exchange
    },
  }
}

const inFlight = ({ live }: Pick<ReturnType<typeof site>, 'live'>): number => [...live.granted()].length
const withBody = (...fields: readonly string[]): HeadPart => ({
  method: 'POST',
  fields: ['Host', 'device.example', ...fields],
})

it.each([
  ['no body', withBody(), true, false],
  ['an empty body', withBody('Content-Length', '0'), true, false],
  ['a body of 8 KiB', withBody('Content-Length', '8192'), true, false],
  ['a body of a byte more', withBody('Content-Length', '8193'), true, true],
  ['a large body that is read', withBody('Content-Length', '8193'), false, false],
  ['a body in chunks', withBody('Transfer-Encoding', 'chunked'), true, true],
  ['a body in chunks that is read', withBody('Transfer-Encoding', 'chunked'), false, false],
  ['an ambiguous target', { target: 'x' }, false, true],
])('C12 a refused request with %s', (_, part, unread, closes) => {
  const refused = site().pass(part, (exchange) => {
    exchange.leavesBody = unread
  })
  expect(refused.closes).toEqual([closes])
})

it('C8 a forwarded request is in flight until it ends, and recorded once with its duration', () => {
  const here = site({ upstream: () => {} })
  const start = here.clock.monotonic()
  const request = here.pass()
  expect([inFlight(here), here.records, request.grants]).toEqual([1, [], ['c0ffee']])
  here.clock.advance(40)
  request.finish('complete')
  expect([inFlight(here), here.records]).toEqual([0, [request]])
  expect(request).toMatchObject({ start, duration: 40, lookup: 0 })
})

it('a refused request is recorded, and was never in flight', () => {
  const here = site()
  const refused = here.pass({})
  expect(refused).toMatchObject({ status: 401, kind: 'refused', outcome: 'complete' })
  expect([inFlight(here), here.records, refused.grants]).toEqual([0, [refused], []])
})

it('H149 a bug of the gate is reported, counted and answered with 500 on a connection that closes, and not recorded', () => {
  const bug = new Error('bug')
  const here = site({
    identify() {
      throw bug
    },
  })
  const request = here.pass()
  expect([request.status, request.closes]).toEqual([500, [true]])
  expect([here.bugs, here.unrecorded, here.records]).toEqual([[bug], [{ kind: 'server-error' }], []])
})

it('H149 a bug behind the gate is reported, and the client gets 500, or sees its response broken off', async () => {
  const bug = new Error('bug')
  const thrower = site({
    upstream() {
      throw bug
    },
  })
  const later = site({
    upstream(exchange, listener) {
      exchange.begin({ status: 200, fields: [] })
      listener.onBug(exchange, bug)
    },
  })
  const endpoint = site({ ownEndpoint: () => Promise.reject(bug) })
  const [failed, broken, posted] = [thrower.pass(), later.pass(), endpoint.pass(LOGIN)]
  await nextTurn()
  expect([thrower.bugs, later.bugs, endpoint.bugs]).toEqual([[bug], [bug], [bug]])
  expect([failed.status, failed.closes, posted.status, posted.closes]).toEqual([500, [true], 500, [true]])
  expect([broken.status, broken.outcome, broken.refusal]).toEqual([200, 'cut', undefined])
})

it('C19 what the side of the device refuses is sent on a connection that stays open', () => {
  const failure: Refusal = { kind: 'upstream', failure: 'connection_refused' }
  const failed = site({ upstream: (exchange, listener) => listener.ended(exchange, failure) }).pass()
  expect([failed.status, failed.closes, failed.refusal]).toEqual([502, [false], failure])
  const left = site({ upstream: (exchange, listener) => listener.ended(exchange, undefined) }).pass()
  expect([left.status, left.refusal]).toEqual([0, undefined])
})

it.each([
  [{ kind: 'content-too-large' }, true],
  [{ kind: 'unsupported-media-type' }, false],
] as const)(
  'C9 an own endpoint that refuses as %j closes the connection only behind a body that may go on',
  async (refusal, closes) => {
    const here = site({ ownEndpoint: async () => refusal })
    const request = here.pass(LOGIN)
    await nextTurn()
    expect([request.closes, request.refusal, here.records]).toEqual([[closes], refusal, [request]])
  },
)

it('an own endpoint answers for the grant of its tokens, which is not in flight', async () => {
  const here = site({
    ownEndpoint: async () => ({ response: { status: 200, fields: [], body: '{}' }, grant: 'f00d' }),
  })
  const request = here.pass(LOGIN)
  expect(inFlight(here)).toBe(0)
  await nextTurn()
  expect(request).toMatchObject({ status: 200, grant: 'f00d', closes: [false], grants: [] })
  expect(here.records).toEqual([request])
})

it('C8 a revoked grant ends its requests: 401 before the response, a broken response after its head', () => {
  const begun = site({ upstream: (exchange) => exchange.begin({ status: 200, fields: [] }) })
  const waiting = site({ upstream: () => {} })
  const [broken, refused] = [begun.pass(), waiting.pass()]
  for (const { live } of [begun, waiting]) live.cut(['another', 'c0ffee'])
  const why = { kind: 'unauthorized', cause: 'revoked' }
  expect(broken).toMatchObject({ status: 200, outcome: 'cut', endedFor: why, refusal: undefined })
  expect(refused).toMatchObject({ status: 401, endedFor: why, refusal: why, closes: [false] })
  expect([begun, waiting].map(inFlight)).toEqual([0, 0])
})

it('the wait for a shared store is part of the record, and its watch for revocations ends with it', async () => {
  const lookup = Promise.withResolvers<TokenLookup>()
  const here = site({ identify: () => lookup.promise })
  const { watch } = here.live
  // A look at the watch of the passage: one that was closed is told nothing more.
  const watches: ReturnType<typeof watch>[] = []
  here.live.watch = () => {
    const begun = watch()
    watches.push(begun)
    return begun
  }
  const request = here.pass()
  await here.clock.advance(20)
  lookup.resolve(VALID)
  await nextTurn()
  expect(request).toMatchObject({ lookup: 20, duration: 20, status: 200 })
  here.live.cut(['c0ffee'])
  expect(watches.map(({ judge }) => atGate(judge)(request))).toEqual([undefined])
})

it('H188 only with browser.login, and only for a navigation, a refusal may become the login page', () => {
  const bodiesFor = (fields: readonly string[]) =>
    [false, true].map((browser) => site({ browser }).pass({ fields }).responses[0]?.body)
  const host = ['Host', 'device.example']
  expect(bodiesFor([...host, 'Sec-Fetch-Mode', 'navigate'])).toEqual([
    expect.stringContaining('<h1>A login is needed</h1>'),
    'a page',
  ])
  const json = expect.stringContaining('"invalid_token"')
  expect(bodiesFor(host)).toEqual([json, json])
})

it('H316 a stream for which there is no place is asked for again by a person only, because the device has got the request', () => {
  const fieldsAfter = (attempts: number) =>
    site({
      upstream: (exchange, listener) => {
        Object.assign(exchange, { attempts })
        listener.ended(exchange, { kind: 'overloaded', retryAfter: 1 })
      },
    }).pass({ fields: [...TOKEN, 'Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Site', 'none'] }).responses[0]
      ?.fields
  expect(fieldsAfter(0)).toEqual(expect.arrayContaining(['Retry-After', '1', 'Refresh', '5; url=/']))
  expect(fieldsAfter(1)).toContain('Retry-After')
  expect(fieldsAfter(1)).not.toContain('Refresh')
})

it('H315 a bug of the gate is a page for a navigation, with the request id', () => {
  const identify = () => {
    throw new Error('a bug')
  }
  const { responses, requestId } = site({ identify }).pass({
    fields: [...TOKEN, 'Sec-Fetch-Mode', 'navigate'],
  })
  expect(responses[0]?.body).toContain('<h1>The request failed</h1>')
  expect(responses[0]?.body).toContain(`<code>${requestId}</code>`)
})

it('C20 the response for bytes that are no request is whole, closes the connection, and is counted', () => {
  const here = site()
  const message = here.refusalMessage({ kind: 'malformed', description: 'No request.' })
  expect(message).toMatch(
    /^HTTP\/1\.1 400 Bad Request\r\n(?:[\w-]+: [^\r\n]+\r\n)+Connection: close\r\n\r\n\{.*"No request\."\}$/,
  )
  expect(here.unrecorded).toHaveLength(1)
})
