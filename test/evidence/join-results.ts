import { askedText, joinSkips, NOT_RUN, type PromiseResult, type Results } from './results.ts'

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
      [...ids].map((id) => [id, runs.map(({ promises }) => promises[id] ?? NOT_RUN).reduce(joinPromise)]),
    ),
  }
}

function joinPromise(a: PromiseResult, b: PromiseResult): PromiseResult {
  return {
    passed: a.passed + b.passed,
    failed: a.failed + b.failed,
    skipped: a.skipped + b.skipped,
    reasons: [...new Set([...a.reasons, ...b.reasons])],
  }
}
