import { afterAll, onTestFinished, TestRunner } from 'vitest'

type Close = () => void | Promise<void>

const untilFileEnds: Close[] = []

// Registered when the file is collected: Vitest takes no `afterAll` once tests or hooks run.
afterAll(async () => {
  for (const close of untilFileEnds.splice(0).reverse()) await close()
})

/** Closes what a test opened when that test ends; opened in `beforeAll`, when the file ends. Last opened, first closed. */
export function closeLater(close: Close): void {
  if (TestRunner.getCurrentTest() === undefined) untilFileEnds.push(close)
  else onTestFinished(close)
}
