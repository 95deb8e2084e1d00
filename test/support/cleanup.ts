type Close = () => void | Promise<void>

/** Registers a function to call when the running test ends; false when no test runs. */
type TestScope = (close: Close) => boolean

const atEnd = new Set<Close>()
let testScope: TestScope = () => false

/**
 * Calls `close` when the running test ends; in `beforeAll`, when the test file ends; in a program that is no test, when
 * the program ends. The last opened is closed first.
 * @returns a function that forgets `close`, for what is closed before that: a long run must not collect them
 */
export function closeLater(close: Close): () => void {
  if (testScope(close)) return () => {}
  atEnd.add(close)
  return () => atEnd.delete(close)
}

/** Closes what was opened outside of a test. Called once, when the file or the program ends. */
export async function closeAll(): Promise<void> {
  const closes = [...atEnd].reverse()
  atEnd.clear()
  for (const close of closes) await close()
}

/** Connects `closeLater` to the test runner, which then closes what a test opened. */
export function closeWithTests(scope: TestScope): void {
  testScope = scope
}
