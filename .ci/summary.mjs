// Prints which tests failed, with the first lines of each reason, and then `N passed, N failed`, over the JSON reports of vitest that it is given.
// A log may be kept by its end alone, so what failed in the first run stands here again. A file that could not be run counts as one failed test.
import { readFileSync } from 'node:fs'

let passed = 0
const failures = []
for (const file of process.argv.slice(2)) {
  const report = JSON.parse(readFileSync(file, 'utf8'))
  passed += report.numPassedTests
  for (const { name, status, message, assertionResults } of report.testResults) {
    const failed = assertionResults.filter((test) => test.status === 'failed')
    for (const test of failed) failures.push([`${name}: ${test.fullName}`, test.failureMessages.join('\n')])
    if (status === 'failed' && failed.length === 0) failures.push([name, message])
  }
}
for (const [what, reason] of failures)
  console.log(`FAILED ${what}\n${reason.split('\n', 12).join('\n').slice(0, 2000)}\n`)
console.log(`${passed} passed, ${failures.length} failed`)
