import { defineConfig } from 'vitest/config'
import { LONG_TESTS } from './.ci/long-tests.mjs'
import { PATIENCE } from './test/support/running-test.ts'

/** The tests of a tree, beside those of a bench. */
const LONG = LONG_TESTS.map(({ tests }) => (tests.endsWith('/') ? `${tests}**/*.test.ts` : tests))
const ALL = 'test/**/*.test.ts'
const BENCH = 'test/**/*.bench.test.ts'

export default defineConfig({
  test: {
    projects: [
      // What a change can break: `npm test`.
      { extends: true, test: { name: 'test', include: [ALL], exclude: [BENCH, ...LONG] } },
      // Minutes: machines, servers and browsers of others, floods, what is measured. `npm run test:long`.
      { extends: true, test: { name: 'long', include: LONG } },
      // What takes both cores, so nothing else may run beside it: `npm run test:bench`.
      { extends: true, test: { name: 'bench', include: [BENCH] } },
    ],
    // A line for each file, then the notes, then the summary.
    reporters: ['./test/support/run-notes.ts', 'default'],
    slowTestThreshold: 30_000,
    // Programs in Go live for seconds here: with little garbage to collect, promtool takes a quarter less processor time.
    env: { GOGC: '800' },
    setupFiles: ['test/support/setup.ts'],
    // For `collectGarbage` of test/support/processes.ts.
    execArgv: ['--expose-gc'],
    globalSetup: ['test/support/made-once.ts'],
    // These end what hangs, and promise nothing: a machine with other work to do may take ten times as long as an idle one.
    testTimeout: 5 * PATIENCE,
    hookTimeout: 5 * PATIENCE,
    // How long it takes is not what these wait for; where it is, the test says so.
    expect: { poll: { timeout: PATIENCE } },
    // Two cores is what CI has. Six workers, because a test waits about twice as long as it works; more would load each module
    // more often than they save.
    maxWorkers: 6,
    // A third of the processor time was loading the same modules anew for every file, none of which keeps state.
    isolate: false,
  },
}) as object
