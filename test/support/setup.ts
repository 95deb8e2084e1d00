import { afterAll, onTestFinished, TestRunner } from 'vitest'
import { closeAll, closeWithTests } from './cleanup.ts'

// Registered before the file is collected: Vitest takes no `afterAll` once tests or hooks run.
afterAll(closeAll)

closeWithTests((close) => {
  if (TestRunner.getCurrentTest() === undefined) return false
  onTestFinished(close)
  return true
})
