import type { Reporter, TestCase, TestModule } from 'vitest/node'

/** Prints at the end which tests passed at their second attempt only, and why tests were skipped, with the number of tests and files. */
export default class RunNotes implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const all = (state: 'passed' | 'skipped') =>
      modules.flatMap((module) => [...module.children.allTests(state)])
    const retried = all('passed').filter((test) => (test.diagnostic()?.retryCount ?? 0) > 0)
    const notes = [
      ...section(
        'Passed at the second attempt',
        retried.map((test) => `${fileOf(test)}: ${test.name}`),
      ),
      ...section('Skipped, because', reasonsOf(all('skipped'))),
    ]
    process.stdout.write(notes.join(''))
  }
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`\n${title}\n`, ...lines.map((line) => `  ${line}\n`)]
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
