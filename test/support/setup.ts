import { afterAll, onTestFinished, TestRunner } from 'vitest'
import { closeAll, closeWithTests } from './cleanup.ts'

// Registered before the test file is collected: Vitest accepts no `afterAll` once tests or hooks run.
afterAll(closeAll)

closeWithTests((close) => {
  if (TestRunner.getCurrentTest() === undefined) return false
  onTestFinished(close)
  return true
})
