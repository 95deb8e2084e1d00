import type { Outcome } from '../http/exchange.ts'

/** Reports the end of an exchange to each listener exactly once, also to listeners that are added later. */
export class OutcomeLatch {
  #outcome: Outcome | undefined
  #listeners: ((outcome: Outcome) => void)[] = []

  get settled(): boolean {
    return this.#outcome !== undefined
  }

  settle(outcome: Outcome): void {
    if (this.#outcome !== undefined) return
    this.#outcome = outcome
    const listeners = this.#listeners
    this.#listeners = []
    for (const listener of listeners) listener(outcome)
  }

  listen(listener: (outcome: Outcome) => void): void {
    if (this.#outcome === undefined) this.#listeners.push(listener)
    else listener(this.#outcome)
  }
}
