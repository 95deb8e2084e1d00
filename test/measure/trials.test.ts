import { describe, expect, it } from 'vitest'
import { Bound } from '../../src/forward/bound.ts'
import { UNKNOWN } from '../../src/forward/ceilings.ts'
import { Trials } from '../../src/forward/trials.ts'

interface Found {
  readonly bound: Bound
  readonly trials: Trials
}

/** Trials that have found so many places, of at most `max`; nothing is tried yet. */
function found(limit: number, max: number): Found {
  const bound = new Bound({ min: 1, max }, {}, UNKNOWN)
  const trials = new Trials(bound)
  bound.reachPast(max)
  bound.raise(limit, 'silent', 0)
  trials.begin(false)
  return { bound, trials }
}

/** One round of samples, each so many times as long as usual. */
function round({ bound, trials }: Found, ratios: readonly number[]): void {
  for (const ratio of ratios) trials.sample(bound.tried, ratio, 0)
}

/** Judges so many attempts, and returns how many rounds came before each of them. Each response takes `ratio` times its usual time. */
function pauses(
  attempts: number,
  { most, ratio }: { readonly most: number; readonly ratio: number },
): number[] {
  const at = found(8, most)
  const { bound, trials } = at
  const all: number[] = []
  for (let rounds = 0; all.length < attempts; ) {
    round(at, Array(16).fill(ratio))
    rounds += 1
    if (bound.tried === bound.found) continue
    all.push(rounds)
    rounds = 0
    // The work stays what it was, whatever the bound is.
    while (bound.tried > bound.found) trials.sample(bound.tried, (ratio * bound.tried) / bound.found, 0)
    while (bound.tried < bound.found) trials.sample(bound.tried, ratio, 0)
  }
  return all
}

describe('H198 a bound that was found', () => {
  it('is tried with more places after a pause that doubles up to 16 rounds', () => {
    expect(pauses(7, { most: 64, ratio: 1 })).toEqual([1, 2, 4, 8, 16, 16, 16])
  })

  it('is tried with half of them after a pause that grows fourfold up to 512 rounds', () => {
    expect(pauses(6, { most: 8, ratio: 1.2 })).toEqual([8, 32, 128, 512, 512, 512])
  })

  it.each([
    { slow: 2, limit: 32 },
    { slow: 3, limit: 16 },
  ])(
    'is $limit after $slow of 64 responses at 32 hung: one counts as 16 times its usual time',
    ({ slow, limit }) => {
      const at = found(32, 32)
      round(at, [...Array(64 - slow).fill(1), ...Array(slow).fill(1_000)])
      expect(at.bound.tried).toBe(limit)
    },
  )

  it.each([
    { ratio: 1.4, limit: 8 },
    { ratio: 1.6, limit: 4 },
  ])(
    'is $limit after a round of responses that took $ratio times their usual time at 8',
    ({ ratio, limit }) => {
      const at = found(8, 8)
      round(at, Array(16).fill(ratio))
      expect(at.bound.tried).toBe(limit)
    },
  )

  it.each([
    { limit: 2, samples: 8 },
    { limit: 8, samples: 16 },
    { limit: 64, samples: 64 },
  ])('of $limit is judged by $samples responses', ({ limit, samples }) => {
    const { bound, trials } = found(limit, limit)
    let count = 0
    for (; bound.tried === limit && count < 1_000; count += 1) trials.sample(limit, 2, 0)
    expect(count).toBe(samples)
  })

  it.each([
    { share: 0.4, limit: 8 },
    { share: 0.6, limit: 9 },
  ])(
    'of 8 is $limit after an attempt with one more, which brought $share of what it could',
    ({ share, limit }) => {
      const at = found(8, 64)
      round(at, Array(16).fill(1))
      expect(at.bound.tried).toBe(9)
      for (let samples = 0; samples < 18; samples += 1) at.trials.sample(9, 9 / (8 + share), 0)
      expect(at.bound.found).toBe(limit)
    },
  )

  it.each([
    { share: 0.7, limit: 8 },
    { share: 0.8, limit: 16 },
  ])('is $limit on its way from 8 to 16, if the device does $share of the work at 9', ({ share, limit }) => {
    const at = found(8, 8)
    round(at, Array(16).fill(1))
    at.bound.raise(16, 'silent', 0)
    const ratio = 9 / (8 * share)
    for (let responses = 0; responses < 8; responses += 1) at.trials.approach(9, ratio, 0)
    expect(at.bound.found).toBe(limit)
  })
})
