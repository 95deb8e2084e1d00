import { expect, it } from 'vitest'
import type { Client } from '../../src/http/admission.ts'
import { slowLogins } from '../../src/oauth/slow-logins.ts'
import { nextTurn } from '../../src/system/clock.ts'
import type { LogInResult } from '../../src/tokens/issuing.ts'
import { stillClock } from '../support/clock.ts'

const TOKENS: LogInResult = { grant: 'g', accessToken: 'a', refreshToken: 'r', expiresIn: 60 }

/** A client that may leave. */
function createRequest(key: string) {
  const client: Client = { address: key, key, peerTrusted: false, hops: 0, admitted: true }
  const listeners: (() => void)[] = []
  const request = { client, answered: false, onEnd: (listener: () => void) => listeners.push(listener) }
  return {
    request,
    leave(): void {
      request.answered = true
      for (const listener of listeners) listener()
    },
  }
}

/** Logins whose passwords are verified when the test says so. */
function start({ maxKeys = 100, bodyTimeout = 10_000 } = {}) {
  const clock = stillClock()
  const known = new Set<string>()
  const verified: { readonly password: string; readonly settle: (result: LogInResult) => void }[] = []
  let slowed = 0
  const logIn = slowLogins((password) => new Promise((settle) => verified.push({ password, settle })), {
    clock,
    settings: {
      config: { limits: { wrongPasswords: 'slow', maxKeys } },
      bodyTimeout,
    },
    history: { isKnown: (client) => known.has(client), isUnlimited: () => true },
    onSlowed: () => {
      slowed += 1
    },
  })
  let decided = 0

  return {
    clock,
    known,
    verified,
    slowed: () => slowed,
    /** An attempt, and its result when it has one. */
    async attempt(password = 'p', from = 'one') {
      const { request, leave } = createRequest(from)
      const state: { result: LogInResult | undefined; leave: () => void } = { result: undefined, leave }
      logIn(password, request, 'password').then((result) => {
        state.result = result
      })
      await nextTurn()
      return state
    },
    /** So many attempts in one turn of the event loop, as HTTP/2 brings them. */
    async burst(count: number): Promise<void> {
      for (let i = 0; i < count; i += 1) void logIn('p', createRequest('one').request, 'password')
      await nextTurn()
    },
    /** Gives the attempts that are being verified this result, and those that begin then. */
    async decide(result: LogInResult, most = Number.POSITIVE_INFINITY): Promise<void> {
      for (let count = 0; decided < verified.length && count < most; count += 1) {
        verified[decided]?.settle(result)
        decided += 1
        await nextTurn()
      }
    },
    pass: clock.advance,
  }
}

it('H212 as many attempts of a client are verified at once as may be wrong, and the others follow their verdicts', async () => {
  const site = start()
  await site.burst(30)
  expect(site.verified).toHaveLength(4)
  await site.decide(TOKENS, 1)
  expect(site.verified).toHaveLength(5)
  await site.decide(TOKENS)
  expect([site.verified.length, site.slowed()]).toEqual([30, 0])
})

it('H212 of thirty wrong attempts six are verified within 1.5 s, one after the other from the fifth on', async () => {
  const site = start()
  const attempts = []
  for (let i = 0; i < 30; i += 1) attempts.push(await site.attempt())
  await site.decide('wrong')
  expect(site.verified).toHaveLength(4)
  const counts: number[] = []
  for (const ms of [200, 50, 450, 50, 750]) {
    await site.pass(ms)
    await site.decide('wrong')
    counts.push(site.verified.length)
  }
  expect(counts).toEqual([4, 5, 5, 6, 6])
  // The next ones would wait until after their deadline.
  for (let i = 0; i < 10; i += 1) {
    await site.pass(1_000)
    await site.decide('wrong')
  }
  expect(site.verified.length).toBeLessThanOrEqual(9)
  expect(attempts.every(({ result }) => result !== undefined)).toBe(true)
})

it('H212 a right password begins the attempts that wait behind it', async () => {
  const site = start()
  for (let i = 0; i < 4; i += 1) await site.attempt()
  await site.decide('wrong')
  const waiting = []
  for (let i = 0; i < 5; i += 1) waiting.push(await site.attempt())
  await site.pass(250)
  expect(site.verified).toHaveLength(5)
  await site.decide(TOKENS)
  expect(waiting.map(({ result }) => result)).toEqual(Array(5).fill(TOKENS))
})

it('H212 an attempt whose client leaves while it waits passes its turn on, and is not verified', async () => {
  const site = start()
  for (let i = 0; i < 4; i += 1) await site.attempt()
  await site.decide('wrong')
  const first = await site.attempt('first')
  await site.attempt('second')
  await site.pass(100)
  first.leave()
  await site.pass(150)
  expect(site.verified.at(-1)?.password).toBe('second')
  expect(site.verified).toHaveLength(5)
})

it('H212 one whose client leaves while it is verified counts all the same', async () => {
  const site = start()
  for (let i = 0; i < 4; i += 1) (await site.attempt()).leave()
  await site.decide('wrong')
  await site.attempt()
  expect(site.verified).toHaveLength(4)
})

it('H212 a client has at most 64 attempts that wait; further ones are overloaded, and another client is not', async () => {
  const site = start()
  const attempts = []
  for (let i = 0; i < 70; i += 1) attempts.push(await site.attempt())
  expect(attempts.filter(({ result }) => result === 'overloaded')).toHaveLength(2)
  await site.attempt('p', 'another')
  expect(site.verified).toHaveLength(5)
  await site.decide(TOKENS)
  expect(attempts.filter(({ result }) => result === TOKENS)).toHaveLength(68)
})

it('H213 however many wrong passwords one client sends, another one does not wait for them', async () => {
  const site = start()
  for (let wrong = 0; wrong < 144; wrong += 4) {
    for (let i = 0; i < 4; i += 1) await site.attempt()
    await site.decide('wrong')
    // It has the right password, too, as many scripts behind one address do.
    await site.attempt()
    await site.pass(250)
    await site.decide(TOKENS)
  }
  const before = site.verified.length
  await site.attempt('p', 'another')
  expect([before, site.verified.length]).toEqual([180, 181])
})

it('H213 many clients with a few wrong passwords each slow the others, until a right one', async () => {
  const site = start()
  for (let client = 0; client < 15; client += 1) {
    for (let i = 0; i < 4; i += 1) await site.attempt('p', `client ${client}`)
    await site.decide('wrong')
  }
  const mine = (): number => site.verified.filter(({ password }) => password === 'mine').length
  for (let i = 0; i < 3; i += 1) await site.attempt('mine', 'another')
  expect(mine()).toBe(0)
  await site.pass(250)
  expect(mine()).toBe(1)
  site.known.add('another')
  await site.decide(TOKENS)
  expect(mine()).toBe(3)
})

it('H181 the wait of a client doubles from 0.25 s to 30 s, and no further', async () => {
  const site = start({ bodyTimeout: 60_000 })
  for (let i = 0; i < 4; i += 1) await site.attempt()
  await site.decide('wrong')
  for (const wait of [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
    await site.attempt()
    const before = site.verified.length
    await site.pass(wait - 50)
    expect([wait, site.verified.length - before]).toEqual([wait, 0])
    await site.pass(50)
    expect([wait, site.verified.length - before]).toEqual([wait, 1])
    await site.decide('wrong')
  }
})

/** So many wrong passwords at the same time, four of each client. */
async function manyWrong(site: ReturnType<typeof start>, count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) await site.attempt('p', `client ${i >> 2}`)
  await site.decide('wrong')
}

it.each([
  [49, 0],
  [50, 250],
  [74, 250],
  [75, 500],
])('H213 after %d wrong passwords of many clients, another one waits for %d ms', async (count, wait) => {
  const site = start()
  await manyWrong(site, count)
  await site.attempt('mine', 'another')
  if (wait > 0) {
    await site.pass(wait - 50)
    expect(site.verified).toHaveLength(count)
    await site.pass(50)
  }
  expect(site.verified).toHaveLength(count + 1)
})

it('C26 a client that has logged in before does not wait for the wrong passwords of others', async () => {
  const site = start()
  await manyWrong(site, 60)
  site.known.add('another')
  await site.attempt('right', 'another')
  expect(site.verified).toHaveLength(61)
  await site.decide('wrong')
  site.known.clear()
  await site.attempt('right', 'another')
  expect(site.verified).toHaveLength(61)
})

it('H181 an attempt that waits is counted once, however often its turn is looked at', async () => {
  const site = start()
  for (let i = 0; i < 4; i += 1) await site.attempt()
  await site.decide('wrong')
  for (let i = 0; i < 3; i += 1) await site.attempt()
  expect(site.slowed()).toBe(1)
  await site.pass(250)
  await site.decide('wrong')
  expect(site.slowed()).toBe(2)
})

it('H181 the clients past limits.max_keys are forgotten together, after ten minutes without an attempt of any', async () => {
  const site = start({ maxKeys: 1 })
  await site.attempt('p', 'known')
  const verifiedAfter = async (quiet: number): Promise<number> => {
    await site.clock.advance(quiet)
    const before = site.verified.length
    for (let i = 0; i < 5; i += 1) (await site.attempt('p', `further ${i}`)).leave()
    await site.decide('wrong')
    return site.verified.length - before
  }
  expect([await verifiedAfter(0), await verifiedAfter(599_999)]).toEqual([4, 0])
  // The known client is forgotten, too, and one of the others takes its place.
  expect(await verifiedAfter(600_000)).toBe(5)
})

it('H213 one wrong password of many clients is forgotten every twelve seconds', async () => {
  const site = start()
  await manyWrong(site, 51)
  await site.clock.advance(11_900)
  const slowed = await site.attempt('mine', 'another')
  expect(site.verified).toHaveLength(51)
  slowed.leave()
  await site.clock.advance(200)
  await site.attempt('mine', 'another')
  expect(site.verified).toHaveLength(52)
})

it.each([
  [40, 0],
  [41, 1],
])(
  'H213 ten wrong passwords of one client count among those of all, however many it sends: with %d of others, %d waits',
  async (others, waits) => {
    const site = start()
    for (let round = 0; round < 3; round += 1) {
      for (let i = 0; i < 4; i += 1) await site.attempt('p', 'guesser')
      await site.decide('wrong')
      // It has the right password, too, which ends its own wait.
      await site.attempt('p', 'guesser')
      await site.pass(250)
      await site.decide(TOKENS)
    }
    await manyWrong(site, others)
    const before = site.verified.length
    await site.attempt('mine', 'another')
    expect(before + 1 - site.verified.length).toBe(waits)
  },
)

it('H212 at most 1,000 attempts of all clients wait, and a place is free again when one leaves', async () => {
  const site = start()
  const waiting: Awaited<ReturnType<typeof site.attempt>>[] = []
  for (let client = 0; client < 17; client += 1) {
    for (let i = 0; i < 64; i += 1) waiting.push(await site.attempt('p', `client ${client}`))
  }
  const overloaded = () => waiting.filter(({ result }) => result === 'overloaded').length
  // Of each client four are verified, and do not wait.
  expect([waiting.length - 17 * 4, overloaded()]).toEqual([1_020, 20])
  const last = async (): Promise<unknown> => (await site.attempt('p', 'client 16')).result
  expect(await last()).toBe('overloaded')
  waiting.find(({ result }, i) => i > 4 && result === undefined)?.leave()
  expect([await last(), await last()]).toEqual([undefined, 'overloaded'])
})

it('C26 an attempt of a client that has logged in before waits although a thousand others wait', async () => {
  const site = start()
  const others: Awaited<ReturnType<typeof site.attempt>>[] = []
  for (let client = 0; client < 16; client += 1) {
    for (let i = 0; i < 68; i += 1) others.push(await site.attempt('p', `client ${client}`))
  }
  const overloaded = () => others.filter(({ result }) => result === 'overloaded').length
  const before = overloaded()
  site.known.add('known')
  const own = []
  for (let i = 0; i < 6; i += 1) own.push(await site.attempt('p', 'known'))
  // Four are verified at once, and two wait for their verdicts.
  expect([own.map(({ result }) => result), overloaded() - before]).toEqual([Array(6).fill(undefined), 2])
})

it('C26 past limits.max_keys a client that is known counts alone: wrong passwords of the others do not slow it', async () => {
  const site = start({ maxKeys: 1 })
  await site.attempt('p', 'fills the table')
  await site.decide('wrong')
  for (let i = 0; i < 4; i += 1) {
    await site.attempt('p', `attacker ${i}`)
    await site.decide('wrong')
  }
  const before = site.verified.length
  await site.attempt('p', 'new')
  expect(site.verified).toHaveLength(before)
  site.known.add('has logged in before')
  await site.attempt('p', 'has logged in before')
  expect(site.verified).toHaveLength(before + 1)
})
