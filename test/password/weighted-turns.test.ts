import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ALL_EQUAL, WeightedTurns } from '../../src/password/weighted-turns.ts'

interface Waiter {
  readonly client: string
  readonly address: string
}

const waiter = (client: string, address = client): Waiter => ({ client, address })

/** Serves a number of turns, and returns whose they were. A client that was served waits again at once. */
function serve(turns: WeightedTurns<Waiter>, count: number): string[] {
  return Array.from({ length: count }, () => {
    const next = turns.next()
    if (next === undefined) return ''
    turns.leave(next)
    turns.join({ ...next })
    return next.client
  })
}

const knows = (...known: readonly string[]) => ({
  ...ALL_EQUAL,
  isKnown: (client: string) => known.includes(client),
})

it('C26 known clients come first, in turn, and one turn of eight goes to the others', () => {
  const turns = new WeightedTurns<Waiter>(knows('k1', 'k2'), () => 0)
  for (const client of ['x', 'k1', 'k1', 'k2']) turns.join(waiter(client))
  expect(serve(turns, 9)).toEqual(['k1', 'k2', 'k1', 'k2', 'k1', 'k2', 'k1', 'x', 'k2'])
})

it('C26 a known client that comes alone has the next turn, however many turns it had before', () => {
  const turns = new WeightedTurns<Waiter>(knows('k'), () => 0)
  turns.join(waiter('x'))
  for (let turn = 0; turn < 20; turn += 1) {
    const own = waiter('k')
    turns.join(own)
    expect(turns.next()).toBe(own)
    turns.leave(own)
    expect(serve(turns, 1)).toEqual(['x'])
  }
})

it('C26 a waiter that has left divides no share, neither of its client nor of its address', () => {
  const turns = new WeightedTurns<Waiter>(ALL_EQUAL, () => 0)
  const [stays, left, neighbour] = [waiter('c', 'net'), waiter('c', 'net'), waiter('d', 'net')]
  for (const each of [stays, left, neighbour]) turns.join(each)
  expect(turns.shareOf(stays)).toBe(1 / 4)
  turns.leave(left)
  expect(turns.shareOf(stays)).toBe(1 / 2)
  turns.leave(neighbour)
  expect(turns.shareOf(stays)).toBe(1)
})

it('C26 an address is drawn by its weight, and its clients divide it', () => {
  const weights = new Map([['guessing', 0.25]])
  let at = 0
  const precedence = { isKnown: () => false, weightOf: (address: string) => weights.get(address) ?? 1 }
  const turns = new WeightedTurns<Waiter>(precedence, () => at)
  const addresses: Readonly<Record<string, string>> = { g: 'guessing', n1: 'net', n2: 'net' }
  for (const client of ['g', 'n1', 'n2']) turns.join(waiter(client, addresses[client]))
  turns.join(waiter('n2', 'net'))
  turns.join(waiter('other'))
  const drawn = new Map<string, number>()
  for (at = 0; at < 1; at += 1 / 1_800) {
    const { client = '' } = turns.next() ?? {}
    drawn.set(client, (drawn.get(client) ?? 0) + 1)
  }
  // 0.25 of 2.25, then half of 1 for each client of the net, and 1.
  const expected = { g: 200, n1: 400, n2: 400, other: 800 }
  for (const [client, times] of Object.entries(expected))
    expect(Math.abs((drawn.get(client) ?? 0) - times), client).toBeLessThanOrEqual(2)
  const shares = { g: 0.25, n1: 0.5, n2: 0.25, other: 1 }
  for (const [client, share] of Object.entries(shares))
    expect(turns.shareOf(waiter(client, addresses[client])), client).toBe(share)
})

it('C26 the waiters of a client are served in order of arrival, and one that has left is not', () => {
  const turns = new WeightedTurns<Waiter>(ALL_EQUAL, () => 0.99)
  const all = [waiter('a'), waiter('a'), waiter('a')] as const
  for (const each of all) turns.join(each)
  turns.leave(all[0])
  expect(turns.next()).toBe(all[1])
  turns.leave(all[1])
  turns.leave(all[2])
  expect(turns.next()).toBeUndefined()
})

it('C26 no client starves: each that waits is drawn, whoever else comes and however often it was wrong', () => {
  fc.assert(
    fc.property(fc.nat(6), fc.nat(6), fc.integer({ min: 1, max: 2 ** 31 - 2 }), (wrong, known, seed) => {
      let state = seed
      const random = (): number => {
        state = (state * 48_271) % 2_147_483_647
        return state / 2_147_483_647
      }
      const precedence = {
        isKnown: (client: string) => client.startsWith('known'),
        weightOf: (address: string) => (address === 'poor' ? 1 / (1 + wrong) ** 2 : 1),
      }
      const turns = new WeightedTurns<Waiter>(precedence, random)
      turns.join(waiter('poor'))
      for (let i = 0; i < known; i += 1) turns.join(waiter(`known ${i}`))
      for (let i = 0; i < 3; i += 1) turns.join(waiter(`new ${i}`))
      expect(serve(turns, 8 * 4 * 20 * (1 + wrong) ** 2)).toContain('poor')
    }),
    { numRuns: 20 },
  )
})
