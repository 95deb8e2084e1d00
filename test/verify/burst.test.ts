import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { judgeInOrder } from '../../src/verify/burst.ts'
import { OUTSIDE, type OutsideId } from '../../src/verify/promises.ts'
import { type Asked, unauthorized } from '../../src/verify/question.ts'
import { Findings } from '../../src/verify/verdict.ts'

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

/** What a burst breaks, and what it leaves untestable. */
function judged(steps: readonly Asked[], requests: number, whole = true) {
  const findings = new Findings()
  judgeInOrder(findings, steps, limitOf(requests), whole)
  const verdicts = [...OUTSIDE.keys()].map((id) => findings.verdictOf(id))
  const broken = verdicts.filter(({ result }) => result === 'broken')
  const shared = verdicts.filter(({ notes }) => notes.some((note) => note.includes('other clients')))
  return { broken, shared: shared.map(({ id }): OutsideId => id) }
}

const promisesOf = (steps: readonly Asked[], requests: number, whole = true): string[] =>
  judged(steps, requests, whole).broken.map(({ id }) => id)

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
        expect(judged(burst(requests, kinds), requests)).toEqual({ broken: [], shared: [] })
      }),
    )
  })

  it('H127 finds nothing in the rest of a window that was open before', () => {
    fc.assert(
      fc.property(window, fc.double({ min: 0.2, max: 0.99, noNaN: true }), ({ requests, kinds }, share) => {
        const steps = burst(requests, kinds, {}, Math.ceil(requests * share))
        expect(judged(steps, requests, false)).toEqual({ broken: [], shared: [] })
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
          const [found, ...others] = judged(steps, requests).broken
          expect([found?.id, ...others]).toEqual(['C13'])
          expect(found?.departures[0]?.sent).toContain(KINDS[odd])
        },
      ),
    )
  })

  it.each([-1, 1, 3])('H127 C14 finds a limit that is off by %i', (extra) => {
    fc.assert(
      fc.property(window, ({ requests, kinds }) => {
        expect(promisesOf(burst(requests, kinds, { extra }), requests)).toContain('C14')
      }),
    )
  })

  it('H127 C15 finds another status past the limit', () => {
    const kinds = Array.from({ length: 30 }, (_, i) => i % 3)
    const [found, ...others] = judged(burst(20, kinds, { refusal: 503 }), 20).broken
    expect([found?.id, others]).toEqual(['C15', []])
    expect(found?.departures.map(({ came }) => came)).toEqual(Array(3).fill('503 without a body'))
  })

  it('H127 C16 finds a number that never changes, which is no fault of the count', () => {
    const kinds = Array.from({ length: 30 }, (_, i) => i % 3)
    expect(promisesOf(burst(20, kinds, { shows: () => '7' }), 20)).toEqual(['C16'])
  })

  it('H127 C14 counts the responses where X-RateLimit-Remaining is missing', () => {
    const kinds = Array.from({ length: 30 }, (_, i) => i % 3)
    const shows = (): undefined => undefined
    expect(promisesOf(burst(20, kinds, { shows }), 20)).toEqual([])
    expect(promisesOf(burst(20, kinds, { shows, extra: 2 }), 20)).toEqual(['C14'])
  })
})

it('a burst beside other clients says nothing: of equal requests one takes one, and another one more', () => {
  fc.assert(
    fc.property(window, fc.integer({ min: 2, max: 6 }), ({ requests, kinds }, other) => {
      let sent = 0
      const takes = (): number => (++sent === other ? 2 : 1)
      expect(judged(burst(requests, kinds, { takes }), requests)).toEqual({
        broken: [],
        shared: ['C13', 'C14'],
      })
    }),
  )
})

it('a burst that takes longer than a window, of which no response tells, says nothing', () => {
  const steps = burst(20, Array(30).fill(0), { shows: () => undefined, extra: 5 }).map((step, i) => {
    const at = NOW + i * 2_500
    return { ...step, received: { ...step.received, sentAt: at, at } }
  })
  const findings = new Findings()
  judgeInOrder(findings, steps, limitOf(20), true)
  const notes = ['a window ended before it was used up']
  for (const id of ['C13', 'C14'] as const)
    expect(findings.verdictOf(id)).toMatchObject({ result: 'not testable', notes })
})

it('a window that has to be new, and that others have used, says nothing', () => {
  fc.assert(
    fc.property(window, fc.integer({ min: 1, max: 5 }), ({ requests, kinds }, used) => {
      const steps = burst(requests, kinds, {}, requests - used)
      expect(judged(steps, requests)).toEqual({ broken: [], shared: ['C13', 'C14'] })
    }),
  )
})

it('a burst that ends in a window that it has not used up says nothing about the number', () => {
  fc.assert(
    fc.property(window, fc.boolean(), ({ requests, kinds }, whole) => {
      expect(promisesOf(burst(requests, kinds.slice(0, requests - 1)), requests, whole)).toEqual([])
    }),
  )
})
