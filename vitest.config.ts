import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { PATIENCE } from './test/support/patience.ts'

/** The files that take longest, by what their names begin with. Begun last, they would run alone at the end. */
const LONG = [
  'test/contract/closed-connections',
  'test/contract/http2-floods',
  'test/machine/verify-at-length',
  'test/machine/release',
  'test/machine/debian',
  'test/machine/devices',
  'test/machine/drop-in',
  'test/machine/memory',
  'test/machine/image',
  'test/memory/costs',
  'test/fleet/s',
  'test/pages/clients',
  'test/page/',
  'test/browser/page',
  'test/browser/interfaces',
  'test/contract/c21-downloads',
  'test/contract/c25-slow-uploads',
  'test/contract/c23-tunnels',
  'test/password/source-watch',
  'test/contract/http2-deadlines',
  'test/npm-package',
  'test/devices/',
  'test/grafana/queries',
  'test/process/departed-sessions',
  'test/contract/c24-early-refusals',
  'test/store/replicas',
  'test/build/',
  'test/pages/',
  'test/readme',
  'test/fleet/',
  'test/browser/',
  'test/process/',
  'test/sign-in/shared-session',
  'test/memory/',
  'test/hardening/',
  'test/verify/',
  'test/commands/',
]

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const index = LONG.findIndex((name) => moduleId.includes(`/${name}`))
      return index === -1 ? LONG.length : index
    }
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b))
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Takes minutes, so only on demand; what of it is quick, the C21 tests prove with shorter bodies.
    // Machines take minutes, too, and root: `npm run test:machine`.
    // So do the benches of a fleet, with both cores busy.
    exclude: [
      ...(process.env.POSTERN_TEST_BULK === '1' ? [] : ['test/contract/c21-bulk.test.ts']),
      ...(process.env.POSTERN_TEST_BENCH === '1' ? [] : ['test/bench/fleet.test.ts']),
      ...(process.env.POSTERN_TEST_MACHINE === '1' ? [] : ['test/machine/**']),
    ],
    sequence: { sequencer: LongFirst },
    // A line for each file, then the notes, then the summary.
    reporters: ['./test/support/run-notes.ts', 'default'],
    slowTestThreshold: 30_000,
    // Programs in Go live for seconds here: with little garbage to collect, promtool takes a quarter less processor time.
    env: { GOGC: '800' },
    setupFiles: ['test/support/setup.ts'],
    // For test/support/collect-garbage.ts.
    execArgv: ['--expose-gc'],
    globalSetup: ['test/support/bundle.ts', 'test/support/shared-pair.ts'],
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
