// Prints the long tests that a run of .ci/run has to run, a path a line: those that watch what has changed since everything was run, or all of
// them where this clone does not know that commit.
import { changedSinceWhole, LONG_TESTS, touchedBy } from './long-tests.mjs'

const changed = changedSinceWhole()
const touched = changed === undefined ? LONG_TESTS.map(({ tests }) => tests) : touchedBy(changed)
for (const tests of touched) console.log(tests)
