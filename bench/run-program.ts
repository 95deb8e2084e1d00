import process from 'node:process'
import { clockTime } from './format.ts'

type Cleanup = () => void | Promise<void>

const cleanups = new Set<Cleanup>()
let isEnding = false

/** Registers a cleanup for the end of the program, however it ends. The last one registered runs first. */
export function atEnd(cleanup: Cleanup): { readonly cancel: () => void } {
  cleanups.add(cleanup)
  return { cancel: () => cleanups.delete(cleanup) }
}

/**
 * Runs a program: exits with the code that `main` resolves with, or with 1 when `main` throws or runs for more than
 * `timeLimit` ms. Cleanups run in each case and after SIGINT and SIGTERM, so no child process outlives the program.
 */
export async function runProgram(main: () => Promise<0 | 1>, timeLimit: number): Promise<void> {
  let ended: Promise<void> | undefined
  const end = (code: number): Promise<void> => {
    isEnding = true
    ended ??= runCleanups().finally(() => process.exit(code))
    return ended
  }
  const failWith = (message: string): void => {
    process.stderr.write(`${message}\n`)
    end(1)
  }
  process.once('SIGINT', () => end(130))
  process.once('SIGTERM', () => end(143))
  setTimeout(() => failWith(`stopped: not done after ${timeLimit / 1000} s`), timeLimit).unref()
  try {
    await end(await main())
  } catch (error) {
    failWith(error instanceof Error ? (error.stack ?? error.message) : String(error))
  }
}

/**
 * Runs something, then the cleanups that it has registered: it leaves no process and no folder behind, also when it fails. Never resolves
 * once the program is ending: what Ctrl-C interrupted is no result.
 */
export async function cleaningUp<Result>(run: () => Promise<Result>): Promise<Result> {
  const before = new Set(cleanups)
  try {
    return await run()
  } finally {
    await runCleanups(before)
    if (isEnding) await new Promise(() => {})
  }
}

/** Includes cleanups that are registered meanwhile: the program keeps running until this function is done. */
async function runCleanups(except: ReadonlySet<Cleanup> = new Set()): Promise<void> {
  const last = (): Cleanup | undefined => [...cleanups].findLast((cleanup) => !except.has(cleanup))
  for (let cleanup = last(); cleanup !== undefined; cleanup = last()) {
    cleanups.delete(cleanup)
    try {
      await cleanup()
    } catch (error) {
      process.stderr.write(`cleanup failed: ${String(error)}\n`)
    }
  }
}

/** Prints progress to standard error: standard output carries only the result. */
export function say(line: string): void {
  process.stderr.write(`[${clockTime(performance.now() / 1000).padStart(5)}] ${line}\n`)
}
