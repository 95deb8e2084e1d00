import { availableParallelism } from 'node:os'
import process from 'node:process'
import { createVitest, type TestSpecification } from 'vitest/node'

/** What the runner is asked: to run these test files (paths) while the file at `path` has this text. */
export interface Question {
  readonly path: string
  readonly text: string
  readonly tests: readonly string[]
}

/** What it answers: the first failure, if a test failed, and how long all files and each of them took (ms). */
export interface Answer {
  /** The title of a test, or what else went wrong. */
  readonly failure: string | undefined
  /** The test file (path) of the failure; undefined: it belongs to none. */
  readonly file: string | undefined
  readonly took: number
  readonly tookEach: Readonly<Record<string, number>>
}

/** The projects of Vitest that `npm test` does not run. */
const OTHER_TREES = ['long', 'bench']

/**
 * The process in which tests run against mutants. The changed text is handed to Vitest in place of the file's, in memory: the file itself
 * stays as it is. The process is one of its own so that a mutant that never ends can be killed with it.
 */
async function serve(): Promise<void> {
  let question: Question = { path: '', text: '', tests: [] }
  const orderOf = ({ moduleId }: TestSpecification): number => question.tests.indexOf(moduleId)
  class AsAsked {
    shard = (files: TestSpecification[]): TestSpecification[] => files
    sort = (files: TestSpecification[]): TestSpecification[] =>
      files.toSorted((a, b) => orderOf(a) - orderOf(b))
  }
  const load = (id: string): string | undefined => (id === question.path ? question.text : undefined)
  const vitest = await createVitest(
    {
      watch: false,
      fsModuleCache: false,
      reporters: [{}],
      bail: 1,
      maxWorkers: availableParallelism(),
      testTimeout: Number(process.argv[2]),
      sequence: { sequencer: AsAsked },
    },
    { plugins: [{ name: 'mutant', enforce: 'pre', load }] },
  )
  const known = (await vitest.globTestSpecifications()).filter(
    ({ project }) => !OTHER_TREES.includes(project.name),
  )
  process.on('message', async (asked: Question) => {
    const started = performance.now()
    vitest.invalidateFile(question.path)
    question = asked
    vitest.invalidateFile(question.path)
    const files = known.filter((file) => orderOf(file) >= 0)
    const { testModules: all, unhandledErrors } = await vitest.runTestSpecifications(files)
    // Vitest also returns the files of earlier questions, with what came of them then.
    const testModules = all.filter(({ moduleId }) => asked.tests.includes(moduleId))
    const failed = testModules.find((module) => !module.ok())
    const [test] = failed === undefined ? [] : failed.children.allTests('failed')
    const title = failed && (test?.fullName ?? failed.relativeModuleId)
    const answer: Answer = {
      failure: title ?? (unhandledErrors.length > 0 ? 'an error outside of a test' : undefined),
      file: failed?.moduleId,
      took: performance.now() - started,
      tookEach: Object.fromEntries(
        testModules.map((module) => [module.moduleId, module.diagnostic().duration]),
      ),
    }
    process.send?.(answer)
  })
  process.send?.('ready')
}

await serve()
