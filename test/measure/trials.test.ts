import { describe, expect, it } from 'vitest'
import { Trials } from '../../src/forward/trials.ts'

/** Trials that have found so many places; nothing is tried yet. */
function found(limit: number): Trials {
  const trials = new Trials(1, limit)
  trials.begin(limit, false)
  return trials
}

/** One round of samples, each so many times as long as usual. */
function round(trials: Trials, most: number, ratios: readonly number[]): void {
  for (const ratio of ratios) trials.sample(trials.limit, ratio, most)
}

/** Judges so many attempts, and returns how many rounds came before each of them. Each response takes `ratio` times its usual time. */
function pauses(
  attempts: number,
  { most, ratio }: { readonly most: number; readonly ratio: number },
): number[] {
  const trials = found(8)
  const all: number[] = []
  for (let rounds = 0; all.length < attempts; ) {
    round(trials, most, Array(16).fill(ratio))
    rounds += 1
    if (trials.limit === trials.found) continue
    all.push(rounds)
    rounds = 0
    // The work stays what it was, whatever the bound is.
    while (trials.limit > trials.found)
      trials.sample(trials.limit, (ratio * trials.limit) / trials.found, most)
    while (trials.limit < trials.found) trials.sample(trials.limit, ratio, most)
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
      const trials = found(32)
      round(trials, 32, [...Array(64 - slow).fill(1), ...Array(slow).fill(1_000)])
      expect(trials.limit).toBe(limit)
    },
  )

  it.each([
    { ratio: 1.4, limit: 8 },
    { ratio: 1.6, limit: 4 },
  ])(
    'is $limit after a round of responses that took $ratio times their usual time at 8',
    ({ ratio, limit }) => {
      const trials = found(8)
      round(trials, 8, Array(16).fill(ratio))
      expect(trials.limit).toBe(limit)
    },
  )

  it.each([
    { limit: 2, samples: 8 },
    { limit: 8, samples: 16 },
    { limit: 64, samples: 64 },
  ])('of $limit is judged by $samples responses', ({ limit, samples }) => {
    const trials = found(limit)
    let count = 0
    for (; trials.limit === limit && count < 1_000; count += 1) trials.sample(limit, 2, limit)
    expect(count).toBe(samples)
  })

  it.each([
    { share: 0.4, limit: 8 },
    { share: 0.6, limit: 9 },
  ])(
    'of 8 is $limit after an attempt with one more, which brought $share of what it could',
    ({ share, limit }) => {
      const trials = found(8)
      round(trials, 64, Array(16).fill(1))
      expect(trials.limit).toBe(9)
      for (let samples = 0; samples < 18; samples += 1) trials.sample(9, 9 / (8 + share), 64)
      expect(trials.found).toBe(limit)
    },
  )

  it.each([
    { share: 0.7, reason: 'latency' },
    { share: 0.8, reason: undefined },
  ])('ends its way to more for $reason, if the device does $share of the work there', ({ share, reason }) => {
    const trials = found(8)
    round(trials, 8, Array(16).fill(1))
    const ratio = 9 / (8 * share)
    const findings = Array.from({ length: 8 }, () => trials.approach(9, ratio))
    expect(findings.at(-1)?.reason).toBe(reason)
  })
})
