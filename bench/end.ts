import process from 'node:process'

type Undo = () => void | Promise<void>

const undos: Undo[] = []

/** Undone when the program ends, however it ends; the last one registered comes first. */
export function atEnd(undo: Undo): void {
  undos.push(undo)
}

/**
 * Runs a whole program: its exit code is what `main` resolves with, 1 when it throws, and 1 after `longest` ms, so
 * that nothing started here outlives a hang. Ctrl-C cleans up as well.
 */
export async function runProgram(main: () => Promise<0 | 1>, longest: number): Promise<void> {
  let ending: Promise<void> | undefined
  const end = (code: number): Promise<void> => {
    ending ??= undoAll().finally(() => process.exit(code))
    return ending
  }
  const failWith = (message: string): void => {
    process.stderr.write(`${message}\n`)
    end(1)
  }
  process.once('SIGINT', () => end(130))
  process.once('SIGTERM', () => end(143))
  setTimeout(() => failWith(`not done after ${longest / 1000} s: given up`), longest).unref()
  try {
    await end(await main())
  } catch (error) {
    failWith(error instanceof Error ? (error.stack ?? error.message) : String(error))
  }
}

async function undoAll(): Promise<void> {
  for (const undo of undos.splice(0).reverse()) {
    try {
      await undo()
    } catch (error) {
      process.stderr.write(`while cleaning up: ${String(error)}\n`)
    }
  }
}
