import { afterAll, aroundEach } from 'vitest'
import { closeAll, closeWithTests } from './cleanup.ts'
import { runningTest, runTest } from './running-test.ts'

// Registered before the test file is collected: Vitest accepts no `afterAll` once tests or hooks run.
afterAll(closeAll)

aroundEach((test, context) => runTest(context, test))

closeWithTests((close) => {
  const test = runningTest()
  test?.onTestFinished(close)
  return test !== undefined
})
