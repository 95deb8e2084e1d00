import * as z from 'zod/mini'
import { citedIn } from '../promises/citations.ts'

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

/** What a run has shown of a promise. */
export type Shown = 'shown' | 'not shown'

/** A promise is shown if a test of it passed and none failed. */
export function shownBy(result: PromiseResult | undefined): Shown {
  return result !== undefined && result.passed > 0 && result.failed === 0 ? 'shown' : 'not shown'
}

/** Several runs of one commit as one, such as that of `npm test` and that of `npm run test:machine`. The first decides about the head. */
export function joinResults(runs: readonly [Results, ...Results[]]): Results {
  const sum = (count: (run: Results) => number): number => runs.reduce((total, run) => total + count(run), 0)
  const ids = new Set(runs.flatMap(({ promises }) => Object.keys(promises)))
  return {
    ...runs[0],
    changed: runs.some(({ changed }) => changed),
    asked: runs.length === 1 ? runs[0].asked : [runs.map(askedText).join(', then ')],
    passed: sum(({ passed }) => passed),
    failed: sum(({ failed }) => failed),
    skipped: sum(({ skipped }) => skipped),
    skips: joinSkips(runs.flatMap(({ skips }) => skips)),
    promises: Object.fromEntries(
      [...ids].map((id) => [id, runs.map(({ promises }) => promises[id] ?? NONE).reduce(joinPromise)]),
    ),
  }
}

/** What a run was asked for, in words. */
export function askedText({ asked }: Results): string {
  return asked.length === 0 ? 'all tests' : asked.join(' ')
}

const NONE: PromiseResult = { passed: 0, failed: 0, skipped: 0, reasons: [] }

function joinPromise(a: PromiseResult, b: PromiseResult): PromiseResult {
  return {
    passed: a.passed + b.passed,
    failed: a.failed + b.failed,
    skipped: a.skipped + b.skipped,
    reasons: [...new Set([...a.reasons, ...b.reasons])],
  }
}

function joinSkips(skips: readonly Skip[]): readonly Skip[] {
  return [...Map.groupBy(skips, ({ reason }) => reason)]
    .map(([reason, same]) => ({ reason, tests: same.reduce((sum, { tests }) => sum + tests, 0) }))
    .sort((a, b) => b.tests - a.tests)
}

/**
 * Reads what `npm test -- --results FILE` wrote.
 *
 * @throws Error if it is something else
 */
export function parseResults(text: string, file: string): Results {
  const read = readAs(text)
  if (read === undefined)
    throw new Error(`${file} is no file of npm test -- --results FILE: make it with that`)
  return read
}

/** Whether a text is a run that was written down. */
export function isResults(text: string): boolean {
  return readAs(text) !== undefined
}

const COUNT = z.number().check(z.int(), z.minimum(0))
const TEXTS = z.array(z.string())
const COUNTS = { passed: COUNT, failed: COUNT, skipped: COUNT }

const RESULTS: z.ZodMiniType<Results> = z.object({
  commit: z.string(),
  changed: z.boolean(),
  date: z.iso.datetime(),
  node: z.string(),
  asked: TEXTS,
  ...COUNTS,
  skips: z.array(z.object({ reason: z.string(), tests: COUNT })),
  promises: z.record(z.string(), z.object({ ...COUNTS, reasons: TEXTS })),
})

function readAs(text: string): Results | undefined {
  try {
    return RESULTS.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

/**
 * @throws Error if the run was of other files than those of `source`: its figures say nothing about these
 */
export function checkSource(
  { commit, changed }: Results,
  source: { readonly commit: string; readonly changed: boolean },
  file: string,
): void {
  const again = 'run npm test -- --results FILE again, on this checkout'
  if (commit !== source.commit)
    throw new Error(`${file} is of commit ${commit}, and the release is of ${source.commit}: ${again}`)
  if (changed && !source.changed)
    throw new Error(`${file} is of a checkout with changed files, and the release of ${commit}: ${again}`)
  if (!changed && source.changed)
    throw new Error(
      `${file} is of ${commit}, and this checkout has changed files: commit them, then ${again}`,
    )
}
