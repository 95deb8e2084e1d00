/** Counts the operations by their outcome, and keeps the failures. */
export interface Ledger {
  count(operation: string, outcome: string): void
  fail(operation: string, what: string): void
  readonly operations: ReadonlyMap<string, ReadonlyMap<string, number>>
  readonly failures: readonly string[]
  readonly total: number
}

/** How many failures are kept with their text. The others are only counted. */
const MOST_FAILURES = 50

export function createLedger(): Ledger {
  const operations = new Map<string, Map<string, number>>()
  const failures: string[] = []
  let total = 0
  function count(operation: string, outcome: string): void {
    total += 1
    const outcomes = operations.get(operation) ?? new Map<string, number>()
    operations.set(operation, outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1))
  }
  return {
    count,
    fail(operation, what) {
      count(operation, 'FAILED')
      if (failures.length < MOST_FAILURES) failures.push(`${operation}: ${what}`)
    },
    operations,
    failures,
    get total() {
      return total
    },
  }
}
