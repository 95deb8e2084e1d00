import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Asked, unauthorized } from '../../src/verify/exchange.ts'
import { judgeInOrder } from '../../src/verify/rounds/in-order.ts'

const NOW = 1_700_000_000_000

/** How a server departs from the documented limit. */
interface Server {
  /** What a request of this kind takes from the window. */
  readonly takes?: (kind: number) => number
  /** Requests that pass beyond the limit. */
  readonly extra?: number
  readonly refusal?: number
  /** What it shows where `left` requests remain. */
  readonly shows?: (left: number) => string | undefined
}

const KINDS = ['with a valid token', 'without a token', 'with an unknown token']
const STATUSES = [200, 401, 401]

/** The steps of a burst of requests of these kinds against a server that starts with `left` of `requests`. */
function burst(requests: number, kinds: readonly number[], server: Server = {}, left = requests): Asked[] {
  const { takes = () => 1, extra = 0, refusal = 429, shows = String } = server
  let rest = left + extra
  return kinds.map((kind) => {
    const passes = rest > 0
    if (passes) rest -= takes(kind)
    const remaining = shows(Math.max(0, rest - extra))
    const fields = new Map([
      ['x-ratelimit-limit', [String(requests)]],
      ['x-ratelimit-remaining', remaining === undefined ? [] : [remaining]],
      ['x-ratelimit-reset', [String(NOW / 1000 + 60)]],
    ])
    const expected = STATUSES[kind] ?? 0
    const status = passes ? expected : refusal
    const received = { status, fields, body: '', at: NOW, sentAt: NOW, ms: 1, failure: undefined }
    return { question: unauthorized('/', [], KINDS[kind] ?? ''), expected, received }
  })
}

const limitOf = (requests: number) => ({ requests, window: 60 })
const promisesOf = (steps: readonly Asked[], requests: number, whole = true): string[] => [
  ...new Set(judgeInOrder(steps, limitOf(requests), whole).map(({ promise }) => promise)),
]

/** A limit, and kinds of requests in any order: enough to use it up, and each kind once in the first ten. */
const window = fc.integer({ min: 10, max: 80 }).chain((requests) =>
  fc.record({
    requests: fc.constant(requests),
    kinds: fc
      .array(fc.integer({ min: 0, max: 2 }), { minLength: requests + 3, maxLength: requests + 20 })
      .map((kinds) => [0, 0, 1, 2, 0, 1, 2, ...kinds]),
  }),
)

describe('the judgement of a burst', () => {
  it('H127 finds nothing where each request counts once and exactly the limit passes', () => {
    fc.assert(
      fc.property(window, ({ requests, kinds }) => {
        expect(judgeInOrder(burst(requests, kinds), limitOf(requests), true)).toEqual([])
      }),
    )
  })

  it('H127 finds nothing in the rest of a window that was open before', () => {
    fc.assert(
      fc.property(window, fc.double({ min: 0.2, max: 0.99, noNaN: true }), ({ requests, kinds }, share) => {
        const steps = burst(requests, kinds, {}, Math.ceil(requests * share))
        expect(judgeInOrder(steps, limitOf(requests), false)).toEqual([])
      }),
    )
  })

  it('H127 C13 names the kind that is not counted, or counted twice', () => {
    fc.assert(
      fc.property(
        window,
        fc.integer({ min: 0, max: 2 }),
        fc.constantFrom(0, 2),
        ({ requests, kinds }, odd, amount) => {
          const steps = burst(requests, kinds, { takes: (kind) => (kind === odd ? amount : 1) })
          const found = judgeInOrder(steps, limitOf(requests), true)
          expect(found.map(({ promise }) => promise)).toEqual(['C13'])
          expect(found[0]?.sent).toContain(KINDS[odd])
        },
      ),
    )
  })

  it.each([-1, 1, 3])('H127 C14 finds a limit that is off by %i', (extra) => {
    fc.assert(
      fc.property(window, ({ requests, kinds }) => {
        const stated = extra > 0 ? {} : { shows: (left: number) => String(left + extra) }
        expect(promisesOf(burst(requests, kinds, { extra, ...stated }), requests)).toContain('C14')
      }),
    )
  })

  it('H127 C15 finds another status past the limit', () => {
    const kinds = Array.from({ length: 30 }, (_, i) => i % 3)
    const found = judgeInOrder(burst(20, kinds, { refusal: 503 }), limitOf(20), true)
    expect(found.map(({ promise, came }) => [promise, came])).toEqual(
      Array(3).fill(['C15', '503 without a body']),
    )
  })

  it('H127 C16 finds a number that never changes, which is no fault of the count', () => {
    const kinds = Array.from({ length: 30 }, (_, i) => i % 3)
    expect(promisesOf(burst(20, kinds, { shows: () => '7' }), 20)).toEqual(['C16'])
  })

  it('H127 C13 counts the responses where X-RateLimit-Remaining is missing', () => {
    const kinds = Array.from({ length: 30 }, (_, i) => i % 3)
    const shows = (): undefined => undefined
    expect(promisesOf(burst(20, kinds, { shows }), 20)).toEqual([])
    expect(promisesOf(burst(20, kinds, { shows, extra: 2 }), 20)).toEqual(['C13'])
  })

  it('H127 C14 takes what a leaky bucket forgets in the time of the burst for no fault of the count', () => {
    const kinds = Array.from({ length: 30 }, (_, i) => i % 3)
    const steps = burst(20, kinds, { shows: () => undefined, extra: 2 })
    const slow = steps.map((step, i) => {
      const at = NOW + i * 300
      return { ...step, received: { ...step.received, sentAt: at, at } }
    })
    expect(promisesOf(slow, 20)).toEqual(['C14'])
  })
})

it('a burst that ends in a window that it has not used up says nothing about the number', () => {
  fc.assert(
    fc.property(window, fc.boolean(), ({ requests, kinds }, whole) => {
      expect(promisesOf(burst(requests, kinds.slice(0, requests - 1)), requests, whole)).toEqual([])
    }),
  )
})
