/** Counts by label set, cheaply: one map entry per request on the hot path, handed to the registry when it is scraped. */
export interface Tally<Labels extends readonly string[]> {
  add(labels: Labels, amount?: number): void
  /** Hands over what has come since the last time. */
  drain(take: (labels: Labels, amount: number) => void): void
}

export function createTally<Labels extends readonly string[]>(): Tally<Labels> {
  const pending = new Map<string, { readonly labels: Labels; amount: number }>()
  return {
    add(labels, amount = 1) {
      const key = labels.join(' ')
      const known = pending.get(key)
      if (known === undefined) pending.set(key, { labels, amount })
      else known.amount += amount
    },
    drain(take) {
      for (const { labels, amount } of pending.values()) take(labels, amount)
      pending.clear()
    },
  }
}
