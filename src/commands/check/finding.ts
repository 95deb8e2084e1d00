import { reasonOf } from '../../system/node-permission.ts'
import { isBug, SetupError } from '../../system/setup-error.ts'
import { type ExitCode, exitCodeOf } from '../command.ts'

/** One thing that `check` tries. */
export interface Check {
  readonly name: string
  /** What a problem means for the operator and the clients, and what to do about it, each as a clause. A result may say better. */
  readonly meaning: string
  readonly remedy: string
  readonly run: () => Promise<Finding>
}

/** The result of a check: it passed, or it passed with a `warning` because the operator has to act soon. */
export type Finding = string | ({ readonly warning: string } & Hints)

interface Hints {
  readonly meaning?: string
  readonly remedy?: string | undefined
}

/** A check that failed, with hints of its own. `serve` would start nevertheless. */
export class CheckFailure extends Error {
  readonly hints: Hints
  constructor(message: string, hints: Hints = {}) {
    super(message)
    this.hints = hints
  }
}

/** A result as `check --json` prints it. `meaning` and `remedy` are null if the check passed. */
export interface CheckResult {
  readonly name: string
  readonly result: 'ok' | 'warning' | 'failed'
  readonly message: string
  readonly meaning: string | null
  readonly remedy: string | null
}

/** Runs a check. `exitCode` is 2 if `serve` would not start. Rejects only for a bug. */
export async function runCheck(
  check: Check,
): Promise<{ readonly result: CheckResult; readonly exitCode: ExitCode }> {
  const { name, run } = check
  try {
    const found = await run()
    if (typeof found !== 'string') {
      return { result: problemOf(check, 'warning', found.warning, found), exitCode: 0 }
    }
    return { result: { name, result: 'ok', message: found, meaning: null, remedy: null }, exitCode: 0 }
  } catch (error) {
    if (isBug(error)) throw error
    const hints = error instanceof CheckFailure ? error.hints : error instanceof SetupError ? error : {}
    const message = error instanceof SetupError ? error.fault : reasonOf(error)
    // The name of a check may be the key that the message begins with.
    const rest = message.startsWith(`${name}: `) ? message.slice(name.length + 2) : message
    return { result: problemOf(check, 'failed', rest, hints), exitCode: exitCodeOf(error) }
  }
}

function problemOf(
  { name, meaning, remedy }: Omit<Check, 'run'>,
  result: 'warning' | 'failed',
  message: string,
  hints: Hints,
): CheckResult {
  return { name, result, message, meaning: hints.meaning ?? meaning, remedy: hints.remedy ?? remedy }
}
