import type { Reporter, TestCase, TestModule } from 'vitest/node'

/** Prints at the end why tests were skipped, with the number of tests and files. */
export default class RunNotes implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = modules.flatMap((module) => [...module.children.allTests('skipped')])
    if (skipped.length === 0) return
    const lines = reasonsOf(skipped).map((line) => `  ${line}\n`)
    process.stdout.write(`\nSkipped, because\n${lines.join('')}`)
  }
}

function fileOf(test: TestCase): string {
  return test.module.relativeModuleId
}

/** Each reason once. */
function reasonsOf(skipped: readonly TestCase[]): string[] {
  const reasonOf = (test: TestCase): string => {
    const result = test.result()
    return (result.state === 'skipped' ? result.note : undefined) ?? 'asked for by an option or a condition'
  }
  return [...Map.groupBy(skipped, reasonOf)]
    .sort(([, a], [, b]) => b.length - a.length)
    .map(([reason, tests]) => `${reason}: ${tests.length} tests in ${new Set(tests.map(fileOf)).size} files`)
}
