import type { Outcome } from '../http/exchange.ts'

/** Tells the listeners of an exchange how it ended, exactly once, also those that come later. */
export interface OutcomeLatch {
  readonly settled: boolean
  settle(outcome: Outcome): void
  listen(listener: (outcome: Outcome) => void): void
}

export function createOutcomeLatch(): OutcomeLatch {
  let outcome: Outcome | undefined
  let listeners: ((outcome: Outcome) => void)[] = []
  return {
    get settled() {
      return outcome !== undefined
    },
    settle(value) {
      if (outcome !== undefined) return
      outcome = value
      const told = listeners
      listeners = []
      for (const listener of told) listener(value)
    },
    listen(listener) {
      if (outcome === undefined) listeners.push(listener)
      else listener(outcome)
    },
  }
}
