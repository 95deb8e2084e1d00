import type { Outcome } from '../http/exchange.ts'

/** Tells the listeners of an exchange how it ended, exactly once, also those that come later. */
export class OutcomeLatch {
  #outcome: Outcome | undefined
  #listeners: ((outcome: Outcome) => void)[] = []

  get settled(): boolean {
    return this.#outcome !== undefined
  }

  settle(outcome: Outcome): void {
    if (this.#outcome !== undefined) return
    this.#outcome = outcome
    const told = this.#listeners
    this.#listeners = []
    for (const listener of told) listener(outcome)
  }

  listen(listener: (outcome: Outcome) => void): void {
    if (this.#outcome === undefined) this.#listeners.push(listener)
    else listener(this.#outcome)
  }
}
