import process from 'node:process'

type Undo = () => void | Promise<void>

const undos = new Set<Undo>()
const ending = new AbortController()

/** Resolves unless the program is being ended: then whatever was going on must not be carried on. */
export function unlessEnding(): Promise<void> {
  return ending.signal.aborted ? new Promise(() => {}) : Promise.resolve()
}

/** Undone when the program ends, however it ends; the last one registered comes first. `cancel` when there is no need any more. */
export function atEnd(undo: Undo): { readonly cancel: () => void } {
  undos.add(undo)
  return { cancel: () => undos.delete(undo) }
}

/**
 * Runs a whole program: its exit code is what `main` resolves with, 1 when it throws, and 1 after `longest` ms, so
 * that nothing started here outlives a hang. Ctrl-C cleans up as well.
 */
export async function runProgram(main: () => Promise<0 | 1>, longest: number): Promise<void> {
  let ended: Promise<void> | undefined
  const end = (code: number): Promise<void> => {
    ending.abort()
    ended ??= undoAll().finally(() => process.exit(code))
    return ended
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

/** Also what is begun meanwhile: the program runs on until this is through. */
async function undoAll(): Promise<void> {
  for (let undo = last(); undo !== undefined; undo = last()) {
    undos.delete(undo)
    try {
      await undo()
    } catch (error) {
      process.stderr.write(`while cleaning up: ${String(error)}\n`)
    }
  }
}

function last(): Undo | undefined {
  return [...undos].at(-1)
}
