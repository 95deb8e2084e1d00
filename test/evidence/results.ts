/** A test run, as `npm test -- --results FILE` writes it down. */
export interface Results {
  readonly commit: string
  /** Whether tracked files differed from the commit, before or after the run. */
  readonly changed: boolean
  /** When the run ended, as ISO 8601. */
  readonly date: string
  /** The version of Node and the machine, such as `26.10.0 on linux x64`. */
  readonly node: string
  /** What the command line asked for; empty for everything. */
  readonly asked: readonly string[]
  readonly passed: number
  /** With the files that could not be run. */
  readonly failed: number
  readonly skipped: number
  /** Why tests were skipped, most first. */
  readonly skips: readonly Skip[]
  /** What the tests of each promise did, by its id. A promise without an entry had no test in the run. */
  readonly promises: Readonly<Record<string, PromiseResult>>
}

export interface Skip {
  readonly reason: string
  readonly tests: number
}

export interface PromiseResult {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  /** Why tests of it were skipped. */
  readonly reasons: readonly string[]
}

/** A promise without a test in the run. */
export const NOT_RUN: PromiseResult = { passed: 0, failed: 0, skipped: 0, reasons: [] }

/** What a run has shown of a promise. */
export type Shown = 'shown' | 'not shown'

/** A promise is shown if a test of it passed and none failed. */
export function shownBy(result: PromiseResult = NOT_RUN): Shown {
  return result.passed > 0 && result.failed === 0 ? 'shown' : 'not shown'
}

/** What a run was asked for, in words. */
export function askedText({ asked }: Results): string {
  return asked.length === 0 ? 'all tests' : asked.join(' ')
}

/** Adds up the tests of each reason, most first. */
export function joinSkips(skips: readonly Skip[]): readonly Skip[] {
  return [...Map.groupBy(skips, ({ reason }) => reason)]
    .map(([reason, same]) => ({ reason, tests: same.reduce((sum, { tests }) => sum + tests, 0) }))
    .sort((a, b) => b.tests - a.tests)
}
