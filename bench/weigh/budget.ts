import { readFileSync } from 'node:fs'

/** What Postern may weigh: a bound for each figure. Who makes it heavier raises the bound in the same commit, and says for what. */
export type Budget = Readonly<Record<string, number>>

/** A figure beside its bound. */
export interface Weighed {
  readonly name: string
  readonly value: number
  /** Undefined for a figure that is only reported. */
  readonly bound: number | undefined
  /** `light` asks to lower the bound, so that the gain is not lost again. */
  readonly verdict: 'held' | 'TOO HEAVY' | 'light' | ''
}

/** Times, bytes and wake-ups differ between runs by a few per cent; counts do not. */
const NOISY = /bytes|processor time|memory|wake-ups/
const TOLERANCE = 1.1

export function readBudget(): Budget {
  // Proof of the cast: the test of the scale reads every bound of the file.
  return JSON.parse(readFileSync(new URL('budget.json', import.meta.url), 'utf8')) as Budget
}

/** Compares figures with the budget. A noisy figure may exceed its bound by a tenth. */
export function compareWithBudget(figures: Readonly<Record<string, number>>, budget: Budget): Weighed[] {
  return Object.entries(figures).map(([name, value]) => {
    const bound = budget[name]
    if (bound === undefined) return { name, value, bound, verdict: '' }
    const tolerance = NOISY.test(name) ? TOLERANCE : 1
    if (value > bound * tolerance) return { name, value, bound, verdict: 'TOO HEAVY' }
    return { name, value, bound, verdict: value * TOLERANCE < bound ? 'light' : 'held' }
  })
}
