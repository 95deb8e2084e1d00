import { writeFileSync } from 'node:fs'
import process from 'node:process'
import type { Reporter, SerializedError, TestCase, TestModule, Vitest } from 'vitest/node'
import { readSource, type Source } from '../../deploy/build/source.ts'
import { filesByTitle } from '../promises/citations.ts'
import { readTree } from '../support/source-tree.ts'
import { figuresOf, promisesIn, type RanTest } from './ran-tests.ts'
import type { Results } from './results.ts'

/** Writes a run to the file of `npm test -- --results FILE`. */
export default class ResultsReporter implements Reporter {
  #root = ''
  #before: Promise<Source> | undefined

  onInit({ config }: Vitest): void {
    this.#root = config.root
  }

  onTestRunStart(): void {
    this.#before = readSource()
  }

  async onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): Promise<void> {
    const file = process.env.POSTERN_TEST_RESULTS
    if (file === undefined) throw new Error('POSTERN_TEST_RESULTS names no file: npm test -- --results FILE')
    const after = await readSource()
    const { commit, changed } = (await this.#before) ?? after
    const tests = modules.flatMap((module) => [...module.children.allTests()].map(ranTest))
    // A file that could not be read, what a suite does around its tests, or an error outside of both.
    const suites = modules.flatMap((module) => [module, ...module.children.allSuites()])
    const broken = suites.flatMap((suite) => suite.errors()).length + errors.length
    const results: Results = {
      commit,
      changed: changed || after.changed || after.commit !== commit,
      date: new Date().toISOString(),
      node: `${process.versions.node} on ${process.platform} ${process.arch}`,
      asked: JSON.parse(process.env.POSTERN_TEST_ASKED ?? '[]'),
      ...figuresOf(tests, broken),
      promises: promisesIn(tests, filesByTitle(readTree(this.#root, 'test'))),
    }
    writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`)
    process.stdout.write(`\nThe run is written down in ${file}\n`)
  }
}

function ranTest(test: TestCase): RanTest {
  const { fullName: name, module } = test
  const file = module.relativeModuleId
  const result = test.result()
  switch (result.state) {
    case 'passed':
    case 'failed':
      return { file, name, result: result.state }
    case 'pending':
      return { file, name, result: 'skipped', reason: 'the run ended before it' }
    case 'skipped':
      return { file, name, result: 'skipped', reason: result.note ?? UNNAMED }
  }
}

const UNNAMED = 'an option or a condition of the run left it out'
