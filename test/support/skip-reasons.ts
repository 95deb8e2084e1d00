import type { Reporter, TestModule } from 'vitest/node'

/** Prints at the end why tests were skipped: each reason once, with the number of tests and files that it concerns. */
export default class SkipReasons implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const reasons = new Map<string, { tests: number; readonly files: Set<string> }>()
    for (const module of modules) {
      for (const test of module.children.allTests('skipped')) {
        const result = test.result()
        const reason =
          (result.state === 'skipped' ? result.note : undefined) ?? 'asked for by an option or a condition'
        const entry = reasons.get(reason) ?? { tests: 0, files: new Set() }
        entry.tests += 1
        entry.files.add(module.relativeModuleId)
        reasons.set(reason, entry)
      }
    }
    if (reasons.size === 0) return
    const lines = [...reasons]
      .sort(([, a], [, b]) => b.tests - a.tests)
      .map(([reason, { tests, files }]) => `  ${reason}: ${tests} tests in ${files.size} files\n`)
    process.stdout.write(`\nSkipped, because\n${lines.join('')}`)
  }
}
