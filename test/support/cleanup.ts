type Close = () => void | Promise<void>

/** Registers what is closed when the running test ends; false when no test runs. */
type TestScope = (close: Close) => boolean

const untilEnd = new Set<Close>()
let testScope: TestScope = () => false

/**
 * Closes what a test opened when that test ends; opened in `beforeAll`, when the file ends; opened by a program that
 * is no test, when that ends. Last opened, first closed.
 * @returns to be called when it was closed already, so that a long run does not keep it
 */
export function closeLater(close: Close): () => void {
  if (testScope(close)) return () => {}
  untilEnd.add(close)
  return () => untilEnd.delete(close)
}

/** Closes what no test closes: called once, when the file or the program ends. */
export async function closeAll(): Promise<void> {
  const closes = [...untilEnd].reverse()
  untilEnd.clear()
  for (const close of closes) await close()
}

/** Lets the test runner, where there is one, close what a test opened. */
export function closeWithTests(scope: TestScope): void {
  testScope = scope
}
