import { expect, it } from 'vitest'
import { createGate, type GateDependencies, type Per } from '../../src/gate/admit.ts'
import { createClientAddress } from '../../src/gate/client-address.ts'
import { createLiveExchanges } from '../../src/gate/live-exchanges.ts'
import { createPassage } from '../../src/gate/passage.ts'
import { type Forward, hasBody } from '../../src/http/admission.ts'
import type { Exchange, ExchangeRecord, Outcome, Reply } from '../../src/http/exchange.ts'
import { createWindowTable } from '../../src/limits/window-table.ts'
import { OutcomeLatch } from '../../src/listen/outcome.ts'
import type { TokenLookup } from '../../src/tokens/token-contract.ts'
import { stillClock } from '../support/clock.ts'
import { gateSettings } from '../support/gate-settings.ts'
import { startHttp1Server } from '../support/http1-server.ts'
import { rawConnection } from '../support/raw.ts'
import { requestHead } from '../support/request-head.ts'

const LIMIT = 2
const VALID: TokenLookup = { kind: 'valid', grant: 'c0ffee' }
const UNKNOWN: TokenLookup = { kind: 'refused', cause: 'unknown' }

const shown = requestHead({ fields: ['Host', 'device.example', 'Authorization', 'Bearer shown'] })
const bare = requestHead()

interface Gate {
  readonly identify: GateDependencies['identify']
  readonly per?: Per
  /** Whether the windows, too, answer later. */
  readonly sharedWindows?: boolean
}

function gate({ identify, per = 'client', sharedWindows = false }: Gate): ReturnType<typeof createGate> {
  const clock = stillClock()
  const limit = { requests: LIMIT, window: 60_000, per }
  const table = createWindowTable(limit, { clock, maxKeys: 10 })
  const windows = sharedWindows ? { count: async (key: string) => table.count(key) } : table
  return createGate({
    clock,
    tables: { api: windows, oauth: windows },
    clientOf: createClientAddress([]),
    identify,
    newRequestId: () => 'the-id',
    settings: () => gateSettings(limit),
  })
}

for (const per of ['client', 'grant', 'device'] as const) {
  it(`makes no promise where all is known at once, with a limit per ${per}`, () => {
    const admit = gate({ identify: (token) => (token === 'shown' ? VALID : UNKNOWN), per })
    const other = requestHead({ fields: ['Host', 'a', 'Authorization', 'Bearer other'] })
    const login = requestHead({ method: 'POST', target: '/oauth/token' })
    for (const head of [shown, bare, other, login, { ...shown, method: 'TRACE' }, shown, shown]) {
      expect(admit(head)).not.toBeInstanceOf(Promise)
    }
  })

  it(`gives the same answers when the token is looked up elsewhere, with a limit per ${per}`, async () => {
    const heads = [shown, bare, shown, shown]
    const atOnce = gate({ identify: () => VALID, per })
    const later = gate({ identify: async () => VALID, per })
    const shared = gate({ identify: async () => VALID, per, sharedWindows: true })
    for (const head of heads) {
      const expected = await atOnce(head)
      expect(await later(head)).toEqual(expected)
      expect(await shared(head)).toEqual(expected)
    }
  })
}

it('C13 asks nobody past the limit', async () => {
  let asked = 0
  const admit = gate({
    async identify() {
      asked += 1
      return VALID
    },
  })
  for (let i = 0; i < LIMIT + 3; i += 1) await admit(shown)
  expect(asked).toBe(LIMIT)
})

/** An exchange that notes its answer. Nothing else of it is asked for. */
function notedExchange(): { exchange: Exchange; replies: Reply[]; leave: () => void } {
  const latch = new OutcomeLatch()
  const replies: Reply[] = []
  const settle = (status: number, end: Outcome['end']): void =>
    latch.settle({ status, end, requestBytes: 0, responseBytes: 0 })
  const exchange = {
    head: shown,
    unread: false,
    get answered() {
      return latch.settled
    },
    reply(reply: Reply) {
      if (latch.settled) return
      replies.push(reply)
      settle(reply.status, 'complete')
    },
    onEnd: (listener: (outcome: Outcome) => void) => latch.listen(listener),
  }
  return { exchange: exchange as unknown as Exchange, replies, leave: () => settle(0, 'aborted') }
}

/** A passage whose tokens are looked up elsewhere: `answer` is what comes from there, for the request that waits. */
function passageWith(): {
  readonly pass: (exchange: Exchange) => void
  readonly answer: PromiseWithResolvers<TokenLookup>
  readonly revoke: (grant: string) => void
  readonly forwarded: readonly Forward[]
  readonly records: readonly ExchangeRecord[]
  /** Settles with the first of them. */
  readonly recorded: Promise<void>
  readonly bugs: readonly unknown[]
} {
  const answer = Promise.withResolvers<TokenLookup>()
  const live = createLiveExchanges()
  const forwarded: Forward[] = []
  const records: ExchangeRecord[] = []
  const recorded = Promise.withResolvers<void>()
  const bugs: unknown[] = []
  const unexpected = (): never => expect.fail('not asked for')
  const passage = createPassage({
    admit: gate({ identify: () => answer.promise }),
    ownEndpoints: { token: unexpected, revocation: unexpected },
    upstream: {
      async forward(admission, exchange) {
        forwarded.push(admission)
        let body = ''
        if (hasBody(admission)) for await (const chunk of exchange.body(1000)) body += chunk
        exchange.reply({ status: 200, fields: ['Content-Length', String(body.length)], body })
        return undefined
      },
      upgrade: unexpected,
    },
    live,
    clock: stillClock(),
    refusalSettings: () => ({ statusCodes: 'contract', realm: 'device' }),
    record(record) {
      records.push(record)
      recorded.resolve()
    },
    onBug: (error) => bugs.push(error),
  })
  const revoke = (grant: string): void => live.cut([grant])
  const { promise } = recorded
  return { pass: passage.request, answer, revoke, forwarded, records, recorded: promise, bugs }
}

/** Everything that waited for the answer has gone on. */
const gone = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

it('forwards what is let through later', async () => {
  const { pass, answer, forwarded, records } = passageWith()
  const { exchange, replies } = notedExchange()
  pass(exchange)
  expect([forwarded, records]).toEqual([[], []])
  answer.resolve(VALID)
  await gone()
  expect(forwarded).toMatchObject([{ kind: 'forward', grant: 'c0ffee' }])
  expect(replies.map(({ status }) => status)).toEqual([200])
  expect(records).toMatchObject([{ grant: 'c0ffee', outcome: { status: 200 } }])
})

it('refuses what is not', async () => {
  const { pass, answer, forwarded, records } = passageWith()
  const { exchange, replies } = notedExchange()
  pass(exchange)
  answer.resolve(UNKNOWN)
  await gone()
  expect(forwarded).toEqual([])
  expect(replies.map(({ status }) => status)).toEqual([401])
  expect(records).toMatchObject([{ refusal: { kind: 'unauthorized', cause: 'unknown' } }])
})

it('C24 a client that leaves meanwhile is not forwarded, and recorded once', async () => {
  const { pass, answer, forwarded, records } = passageWith()
  const { exchange, leave } = notedExchange()
  pass(exchange)
  leave()
  answer.resolve(VALID)
  await gone()
  expect(forwarded).toEqual([])
  expect(records).toMatchObject([{ outcome: { status: 0, end: 'aborted' } }])
})

it('C8 a grant that is revoked meanwhile lets nothing through, whatever the answer was', async () => {
  const { pass, answer, revoke, forwarded, records } = passageWith()
  const { exchange, replies } = notedExchange()
  pass(exchange)
  answer.resolve(VALID)
  revoke('c0ffee')
  await gone()
  expect(forwarded).toEqual([])
  expect(replies.map(({ status }) => status)).toEqual([401])
  expect(records).toMatchObject([{ refusal: { kind: 'unauthorized', cause: 'revoked' } }])
})

it('another grant that is revoked meanwhile, or this one earlier, changes nothing', async () => {
  const { pass, answer, revoke, forwarded } = passageWith()
  revoke('c0ffee')
  pass(notedExchange().exchange)
  revoke('another')
  answer.resolve(VALID)
  await gone()
  expect(forwarded).toHaveLength(1)
})

it('a look-up that fails is a bug, and no way to the device', async () => {
  const { pass, answer, forwarded, bugs } = passageWith()
  const { exchange, replies } = notedExchange()
  const bug = new Error('bug')
  pass(exchange)
  answer.reject(bug)
  await gone()
  expect([forwarded, bugs]).toEqual([[], [bug]])
  expect(replies.map(({ status }) => status)).toEqual([500])
})

const UPLOAD =
  'POST /a HTTP/1.1\r\nHost: device.example\r\nAuthorization: Bearer shown\r\nContent-Length: 6\r\n\r\nabc'

/** A real client whose request waits for the answer. */
async function waitingClient(pass: (exchange: Exchange) => void): ReturnType<typeof rawConnection> {
  const asked = Promise.withResolvers<void>()
  const url = await startHttp1Server((exchange) => {
    pass(exchange)
    asked.resolve()
  })
  const client = await rawConnection(url)
  client.write(UPLOAD)
  await asked.promise
  return client
}

it('an upload that came before the answer arrives whole, and the next request after it', async () => {
  const { pass, answer } = passageWith()
  const client = await waitingClient(pass)
  client.write(`def${UPLOAD}ghi`)
  answer.resolve(VALID)
  expect(await client.waitFor(/abcdef.*abcghi/s)).toMatch(/^HTTP\/1\.1 200 /)
})

it('C24 a client that resets its connection before the answer is recorded, and not forwarded', async () => {
  const { pass, answer, forwarded, records, recorded } = passageWith()
  const client = await waitingClient((exchange) => {
    exchange.onEnd(() => answer.resolve(VALID))
    pass(exchange)
  })
  client.reset()
  await recorded
  expect(forwarded).toEqual([])
  expect(records).toMatchObject([{ outcome: { status: 0, end: 'aborted' } }])
})
