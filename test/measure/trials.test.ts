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
})
