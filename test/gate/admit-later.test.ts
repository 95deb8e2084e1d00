import { expect, it } from 'vitest'
import { createGate, type GateDependencies, type GateSettings, judgeAnew } from '../../src/gate/admit.ts'
import { createClientAddress } from '../../src/gate/client-address.ts'
import { createLiveExchanges } from '../../src/gate/live-exchanges.ts'
import { createPassage } from '../../src/gate/passage.ts'
import { refusalResponse } from '../../src/gate/refusal-response.ts'
import type { Per } from '../../src/http/admission.ts'
import type { Admission, Exchange, Forward, RequestHead } from '../../src/http/exchange.ts'
import { parseCidr } from '../../src/http/ip.ts'
import type { LocalResponse, Refusal } from '../../src/http/refusal.ts'
import { createWindowTable } from '../../src/limits/window-table.ts'
import { nextTurn } from '../../src/system/clock.ts'
import type { TokenLookup } from '../../src/tokens/look-up.ts'
import { startHttp1Server } from '../listen/http1-server.ts'
import { gateRules, NO_SESSIONS } from '../support/admitted.ts'
import { stillClock } from '../support/clock.ts'
import { BareExchange, requestHead } from '../support/exchange.ts'
import { rawConnection } from '../support/raw.ts'

const LIMIT = 2
const VALID: TokenLookup = { kind: 'valid', grant: 'c0ffee' }
const UNKNOWN: TokenLookup = { kind: 'refused', cause: 'unknown' }

const MINTED = /^[0-9a-f]{32}$/

const withToken = requestHead({ fields: ['Host', 'device.example', 'Authorization', 'Bearer shown'] })
const withoutToken = requestHead()

interface Gate {
  readonly identify: GateDependencies['identify']
  readonly per?: Per
  /** Whether the windows are asynchronous too. */
  readonly sharedWindows?: boolean
  readonly settings?: GateSettings
}

/** Asks a gate about a request with this head. */
type Ask = (head: RequestHead) => Admission<BareExchange> | Promise<Admission<BareExchange>>

/** What the gate found out and decided. */
function decided(exchange: Exchange): object {
  const { kind, client, decision, resetAt, identity, grant, refusal } = exchange
  return { kind, client, decision, resetAt, identity, grant, refusal }
}

function askerOf(gate: ReturnType<typeof createGate>): Ask {
  return (head) => gate(new BareExchange(head))
}

function settingsOf(per: Per = 'client'): GateSettings {
  return { gate: gateRules({ requests: LIMIT, window: 60_000, per }), clientOf: createClientAddress([]) }
}

function gate({
  identify,
  per = 'client',
  sharedWindows = false,
  settings = settingsOf(per),
}: Gate): ReturnType<typeof createGate> {
  const clock = stillClock()
  const limit = settings.gate.limits.api
  const table = createWindowTable(limit, { clock, maxKeys: 10 })
  const windows = sharedWindows ? { count: async (key: string) => table.count(key) } : table
  return createGate({
    clock,
    tables: { api: windows, oauth: windows, browser: windows },
    sessions: NO_SESSIONS,
    identify,
    settings,
  })
}

for (const per of ['client', 'grant', 'device'] as const) {
  it(`admission is synchronous if the token store is, with a limit per ${per}`, () => {
    const admit = askerOf(gate({ identify: (token) => (token === 'shown' ? VALID : UNKNOWN), per }))
    const other = requestHead({ fields: ['Host', 'a', 'Authorization', 'Bearer other'] })
    const login = requestHead({ method: 'POST', target: '/oauth/token' })
    for (const head of [
      withToken,
      withoutToken,
      other,
      login,
      requestHead({ fields: withToken.fields, method: 'TRACE' }),
      withToken,
      withToken,
    ]) {
      expect(admit(head)).not.toBeInstanceOf(Promise)
    }
  })

  it(`H131 a token that nobody could look up is refused, but not with 401, with a limit per ${per}`, async () => {
    const admission = await askerOf(gate({ identify: async () => ({ kind: 'unavailable' }), per }))(withToken)
    expect(admission).toMatchObject({
      kind: 'refused',
      refusal: { kind: 'store-unavailable' },
      classified: { ambiguous: false },
    })
    expect(
      refusalResponse({ kind: 'store-unavailable' }, { statusCodes: 'contract', realm: 'r' }),
    ).toMatchObject({
      status: 500,
      fields: expect.arrayContaining(['Proxy-Status', 'postern; error=proxy_internal_error']),
      body: expect.stringContaining('"server_error"'),
    })
    expect(refusalResponse({ kind: 'store-unavailable' }, { statusCodes: 'http', realm: 'r' }).status).toBe(
      503,
    )
  })

  it(`H128 no token is looked up for the endpoints of the sidecar, with a limit per ${per}`, async () => {
    let asked = 0
    const identify = (): TokenLookup => {
      asked += 1
      return VALID
    }
    await askerOf(gate({ identify, per }))(
      requestHead({ fields: withToken.fields, method: 'POST', target: '/oauth/token' }),
    )
    expect(asked).toBe(per === 'grant' ? 1 : 0)
  })

  it(`asynchronous admission decides the same, with a limit per ${per}`, async () => {
    const heads = [withToken, withoutToken, withToken, withToken]
    const synchronous = askerOf(gate({ identify: () => VALID, per }))
    const asynchronous = askerOf(gate({ identify: async () => VALID, per }))
    const shared = askerOf(gate({ identify: async () => VALID, per, sharedWindows: true }))
    for (const head of heads) {
      const expected = decided(await synchronous(head))
      expect(decided(await asynchronous(head))).toEqual(expected)
      expect(decided(await shared(head))).toEqual(expected)
    }
  })
}

it('C13 a request past the limit causes no token lookup', async () => {
  let lookups = 0
  const admit = askerOf(
    gate({
      async identify() {
        lookups += 1
        return VALID
      },
    }),
  )
  for (let i = 0; i < LIMIT + 3; i += 1) await admit(withToken)
  expect(lookups).toBe(LIMIT)
})

/** An exchange without a connection: records its responses. */
function recordedExchange(head = withToken): {
  exchange: Exchange
  responses: readonly LocalResponse[]
  leave: () => void
} {
  const exchange = new BareExchange(head)
  return { exchange, responses: exchange.responses, leave: () => exchange.finish('aborted') }
}

/** A passage with an asynchronous token lookup; `lookup` is its result. */
interface WaitingPassage {
  readonly pass: (exchange: Exchange) => void
  readonly lookup: PromiseWithResolvers<TokenLookup>
  readonly revoke: (grant: string) => void
  /** As a reload does. */
  readonly reload: (next: GateSettings) => void
  readonly forwarded: readonly Forward[]
  readonly records: readonly Exchange[]
  /** Resolves with the first record. */
  readonly recorded: Promise<void>
  readonly bugs: readonly unknown[]
  /** The refusals that were counted without a record. */
  readonly unrecorded: readonly Refusal[]
}

function createWaitingPassage(per: Per = 'client'): WaitingPassage {
  const lookup = Promise.withResolvers<TokenLookup>()
  const live = createLiveExchanges()
  const settings = { ...settingsOf(per), config: { statusCodes: 'contract', realm: 'device' } as const }
  const forwarded: Forward[] = []
  const records: Exchange[] = []
  const recorded = Promise.withResolvers<void>()
  const bugs: unknown[] = []
  const unrecorded: Refusal[] = []
  const unexpected = (): never => expect.fail('unexpected call')
  const passage = createPassage({
    admit: gate({ identify: () => lookup.promise, settings }),
    ownEndpoints: {
      token: unexpected,
      revocation: unexpected,
      login: unexpected,
      logout: unexpected,
      preflight: unexpected,
      redirect: unexpected,
    },
    loginPageFor: unexpected,
    device: {
      async upstream(request) {
        forwarded.push(request)
        let body = ''
        if (request.classified.framing !== null) for await (const chunk of request.body(1000)) body += chunk
        request.respond({ status: 200, fields: ['Content-Length', String(body.length)], body })
      },
    },
    live,
    clock: stillClock(),
    settings,
    records: [
      (record) => {
        records.push(record)
        recorded.resolve()
      },
    ],
    onUnrecordedRefusal: (refusal) => unrecorded.push(refusal),
    onBug: (error) => bugs.push(error),
  })
  const revoke = (grant: string): void => live.cut([grant])
  const reload = (next: GateSettings): void => {
    Object.assign(settings, next)
    live.judgeAnew((exchange) => judgeAnew(exchange, settings))
  }
  const { promise } = recorded
  return {
    pass: passage.request,
    lookup,
    revoke,
    reload,
    forwarded,
    records,
    recorded: promise,
    bugs,
    unrecorded,
  }
}

/** Resolves after all continuations of the lookup have run. */
const settled = nextTurn

it('a request whose token is valid is forwarded after the lookup', async () => {
  const { pass, lookup, forwarded, records } = createWaitingPassage()
  const { exchange, responses } = recordedExchange()
  pass(exchange)
  expect([forwarded, records]).toEqual([[], []])
  lookup.resolve(VALID)
  await settled()
  expect(forwarded).toMatchObject([{ kind: 'forward', grant: 'c0ffee' }])
  expect(responses.map(({ status }) => status)).toEqual([200])
  expect(records).toMatchObject([{ grant: 'c0ffee', status: 200 }])
})

it('a request whose token is unknown is refused after the lookup', async () => {
  const { pass, lookup, forwarded, records } = createWaitingPassage()
  const { exchange, responses } = recordedExchange()
  pass(exchange)
  lookup.resolve(UNKNOWN)
  await settled()
  expect(forwarded).toEqual([])
  expect(responses.map(({ status }) => status)).toEqual([401])
  expect(records).toMatchObject([{ refusal: { kind: 'unauthorized', cause: 'unknown' } }])
})

it('C24 a request whose client leaves during the lookup is not forwarded, and recorded once', async () => {
  const { pass, lookup, forwarded, records } = createWaitingPassage()
  const { exchange, leave } = recordedExchange()
  pass(exchange)
  leave()
  lookup.resolve(VALID)
  await settled()
  expect(forwarded).toEqual([])
  expect(records).toMatchObject([{ status: 0, outcome: 'aborted' }])
})

it('C8 a request whose grant is revoked during the lookup is refused, even if the lookup succeeds', async () => {
  const { pass, lookup, revoke, forwarded, records } = createWaitingPassage()
  const { exchange, responses } = recordedExchange()
  pass(exchange)
  lookup.resolve(VALID)
  revoke('c0ffee')
  await settled()
  expect(forwarded).toEqual([])
  expect(responses.map(({ status }) => status)).toEqual([401])
  expect(records).toMatchObject([{ refusal: { kind: 'unauthorized', cause: 'revoked' } }])
})

it('H209 a request that waits for its lookup while a reload comes is judged by the new rules', async () => {
  const { pass, lookup, reload, forwarded, records } = createWaitingPassage()
  const { exchange, responses } = recordedExchange()
  pass(exchange)
  reload({ ...settingsOf(), clientOf: createClientAddress([], false, () => false) })
  lookup.resolve(VALID)
  await settled()
  expect(forwarded).toEqual([])
  expect(responses.map(({ status }) => status)).toEqual([400])
  expect(records).toMatchObject([
    { refusal: { kind: 'address-denied' }, endedFor: { kind: 'address-denied' } },
  ])
})

it('H209 a login that waits for its window while a reload removes its address is refused, and its form not read', async () => {
  const { pass, lookup, reload, records, bugs } = createWaitingPassage('grant')
  const { fields } = withToken
  const { exchange, responses } = recordedExchange(
    requestHead({ method: 'POST', target: '/oauth/token', fields }),
  )
  pass(exchange)
  reload({ ...settingsOf('grant'), clientOf: createClientAddress([], false, () => false) })
  lookup.resolve(VALID)
  await settled()
  expect(bugs).toEqual([])
  expect(responses.map(({ status }) => status)).toEqual([400])
  expect(records).toMatchObject([{ refusal: { kind: 'address-denied' } }])
})

it('C8 H209 of a reload that admits a request, and a revocation after it, during the lookup, the latter counts', async () => {
  const { pass, lookup, reload, revoke, forwarded, records } = createWaitingPassage()
  pass(recordedExchange().exchange)
  reload(settingsOf())
  revoke('c0ffee')
  lookup.resolve(VALID)
  await settled()
  expect(forwarded).toEqual([])
  expect(records).toMatchObject([{ refusal: { kind: 'unauthorized', cause: 'revoked' } }])
})

it('a request that waits for its lookup while a reload comes that admits it, too, is forwarded', async () => {
  const { pass, lookup, reload, forwarded } = createWaitingPassage()
  pass(recordedExchange().exchange)
  reload(settingsOf())
  lookup.resolve(VALID)
  await settled()
  expect(forwarded).toHaveLength(1)
})

it('the revocation of another grant during the lookup, or of the same grant before it, has no effect', async () => {
  const { pass, lookup, revoke, forwarded } = createWaitingPassage()
  revoke('c0ffee')
  pass(recordedExchange().exchange)
  revoke('another')
  lookup.resolve(VALID)
  await settled()
  expect(forwarded).toHaveLength(1)
})

it('H149 a failed lookup is reported and counted as a bug, and the request is not forwarded', async () => {
  const { pass, lookup, forwarded, bugs, unrecorded } = createWaitingPassage()
  const { exchange, responses } = recordedExchange()
  const bug = new Error('bug')
  pass(exchange)
  lookup.reject(bug)
  await settled()
  expect([forwarded, bugs, unrecorded]).toEqual([[], [bug], [{ kind: 'server-error' }]])
  expect(responses.map(({ status }) => status)).toEqual([500])
})

for (const [what, befalls] of [
  ['its token is valid', ({ lookup }) => lookup.resolve(VALID)],
  ['its token is unknown', ({ lookup }) => lookup.resolve(UNKNOWN)],
  ['its lookup fails', ({ lookup }) => lookup.reject(new Error('bug'))],
] as const satisfies readonly (readonly [string, (passage: WaitingPassage) => void])[]) {
  it(`C22 a request that waits for its lookup has an id when ${what}`, async () => {
    const passage = createWaitingPassage()
    const { exchange, responses } = recordedExchange()
    passage.pass(exchange)
    befalls(passage)
    await settled()
    expect(responses).toHaveLength(1)
    expect(exchange.requestId).toMatch(MINTED)
  })
}

it('C22 a request on which the gate fails at once has an id, and so has one whose client has left', async () => {
  const { pass, lookup, reload, records } = createWaitingPassage()
  const left = recordedExchange()
  pass(left.exchange)
  left.leave()
  lookup.resolve(VALID)
  await settled()
  const failed = recordedExchange()
  reload({ ...settingsOf(), clientOf: () => expect.fail('a bug') })
  pass(failed.exchange)
  expect(failed.responses.map(({ status }) => status)).toEqual([500])
  expect([records[0]?.requestId, failed.exchange.requestId]).toEqual([
    expect.stringMatching(MINTED),
    expect.stringMatching(MINTED),
  ])
})

const UPLOAD =
  'POST /a HTTP/1.1\r\nHost: device.example\r\nAuthorization: Bearer shown\r\nContent-Length: 6\r\n\r\nabc'

/** A real client whose request waits for the lookup. */
async function waitingClient(pass: (exchange: Exchange) => void): ReturnType<typeof rawConnection> {
  const received = Promise.withResolvers<void>()
  const url = await startHttp1Server((exchange) => {
    pass(exchange)
    received.resolve()
  })
  const client = await rawConnection(url)
  client.write(UPLOAD)
  await received.promise
  return client
}

it('an upload that starts before the lookup ends arrives complete, and so does the next request', async () => {
  const { pass, lookup } = createWaitingPassage()
  const client = await waitingClient(pass)
  client.write(`def${UPLOAD}ghi`)
  lookup.resolve(VALID)
  expect(await client.waitFor(/abcdef.*abcghi/s)).toMatch(/^HTTP\/1\.1 200 /)
})

it('C24 a request whose client resets the connection during the lookup is recorded and not forwarded', async () => {
  const { pass, lookup, forwarded, records, recorded } = createWaitingPassage()
  const client = await waitingClient((exchange) => {
    exchange.onEnd(() => lookup.resolve(VALID))
    pass(exchange)
  })
  client.reset()
  await recorded
  expect(forwarded).toEqual([])
  expect(records).toMatchObject([{ status: 0, outcome: 'aborted' }])
})

it('C17 a head that repeats keeps its client until a reload, which may name another', () => {
  const proxied = requestHead({ peer: '192.0.2.1', fields: ['Host', 'a', 'X-Forwarded-For', '198.51.100.7'] })
  const settings = { ...settingsOf() }
  const admit = askerOf(gate({ identify: () => VALID, settings }))
  const clientOf = (): unknown => {
    const asked = admit(proxied)
    return asked instanceof Promise ? undefined : asked.client
  }
  const first = clientOf()
  expect(first).toMatchObject({ address: '192.0.2.1' })
  expect(clientOf()).toBe(first)
  const trusted = parseCidr('192.0.2.1/32') ?? expect.fail()
  Object.assign(settings, { ...settingsOf(), clientOf: createClientAddress([trusted]) })
  expect(clientOf()).toMatchObject({ address: '198.51.100.7', peerTrusted: true })
})
