import { citedIn } from '../promises/citations.ts'
import { joinSkips, type PromiseResult, type Results } from './results.ts'

/** One test of a run. */
export interface RanTest {
  /** From the root, such as `test/http/ip.test.ts`. */
  readonly file: string
  /** With the names of the suites around it. */
  readonly name: string
  readonly result: 'passed' | 'failed' | 'skipped'
  /** Why it was skipped. */
  readonly reason?: string
}

/** What a run shows in figures. `broken`: files and errors outside of tests, which count as failed. */
export function figuresOf(
  tests: readonly RanTest[],
  broken: number,
): Pick<Results, 'passed' | 'failed' | 'skipped' | 'skips'> {
  const { passed, failed, skipped } = countsOf(tests)
  const reasons = tests.flatMap(({ reason }) => (reason === undefined ? [] : [{ reason, tests: 1 }]))
  return { passed, failed: failed + broken, skipped, skips: joinSkips(reasons) }
}

function countsOf(tests: readonly RanTest[]): Pick<Results, RanTest['result']> {
  const count = (result: RanTest['result']): number => tests.filter((test) => test.result === result).length
  return { passed: count('passed'), failed: count('failed'), skipped: count('skipped') }
}

/**
 * What the tests of each promise did. A test counts if its name cites the promise and its file is one of those that prove it, so a
 * mention in another title is none.
 *
 * @param files by the id of a promise, as `filesByTitle` finds them
 */
export function promisesIn(
  tests: readonly RanTest[],
  files: ReadonlyMap<string, readonly string[]>,
): Results['promises'] {
  const cited = tests.flatMap((test) =>
    [...new Set(citedIn(test.name))]
      .filter((id) => files.get(id)?.includes(test.file))
      .map((id) => ({ id, test })),
  )
  const byId = Map.groupBy(cited, ({ id }) => id)
  return Object.fromEntries(
    [...byId].map(([id, all]): [string, PromiseResult] => {
      const own = all.map(({ test }) => test)
      return [id, { ...countsOf(own), reasons: [...new Set(own.flatMap(({ reason }) => reason ?? []))] }]
    }),
  )
}
