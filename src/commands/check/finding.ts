import type { Loaded } from '../../config/load.ts'
import { isBug, reasonOf, SetupError } from '../../system/setup-error.ts'
import { wrapped } from '../columns.ts'
import { type ExitCode, exitCodeOf } from '../command.ts'

export interface Check {
  readonly name: string
  /** The configuration key that it is about. An error of the check can name another. */
  readonly key: string
  /** What a problem means, and what to do; each a clause. A finding can override both. */
  readonly meaning: string
  readonly remedy: string
  readonly run: () => Promise<Finding>
}

/** The result of a check: it passed, or it passed with a `warning` because the operator has to act soon. */
export type Finding = string | ({ readonly warning: string } & Hints)

/** The kind of a login that the device asks for, and that `upstream.auth` does not answer. */
export type DeviceLogin = 'basic' | 'digest'

interface Hints {
  readonly meaning?: string | undefined
  readonly remedy?: string | undefined
  readonly login?: DeviceLogin | undefined
}

interface FailureDetails extends Hints {
  /** The value of `upstream.tls` with which it succeeds. */
  readonly tls?: string | undefined
  readonly cause?: unknown
  /** 2 if `serve` would not start. */
  readonly exitCode?: 1 | 2
}

export class CheckFailure extends SetupError {
  readonly meaning: string | undefined
  readonly tls: string | undefined
  constructor(message: string, { meaning, tls, exitCode = 1, ...rest }: FailureDetails = {}) {
    super(message, { exitCode, ...rest })
    this.meaning = meaning
    this.tls = tls
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

const LABELS = { ok: 'ok     ', warning: 'WARNING', failed: 'FAILED ' } as const

/** A line for the result, and below a problem an indented one with what it means and what to do. `columns`: as `columnsOf` says. */
export function describeResult(
  { name, result, message, meaning, remedy }: CheckResult,
  columns: number,
): string {
  const indent = LABELS[result].length + 1
  const hints =
    meaning === null ? '' : `${' '.repeat(indent)}${wrapped(`${meaning}; ${remedy}`, indent, columns)}\n`
  return `${LABELS[result]} ${wrapped(`${name}: ${message}`, indent, columns)}\n${hints}`
}

interface Outcome {
  readonly result: CheckResult
  readonly exitCode: ExitCode
  readonly tls?: string | undefined
  readonly login?: DeviceLogin | undefined
}

/**
 * Runs a check. `exitCode` is 2 if `serve` would not start. Rejects only for a bug.
 *
 * @param locationOf where a key is set, for the message of a failure
 */
export async function runCheck(
  check: Check,
  locationOf: Loaded['locationOf'] = () => undefined,
): Promise<Outcome> {
  const { name, run } = check
  try {
    const found = await run()
    if (typeof found !== 'string') {
      return { result: problemOf(check, 'warning', found.warning, found), exitCode: 0, login: found.login }
    }
    return { result: { name, result: 'ok', message: found, meaning: null, remedy: null }, exitCode: 0 }
  } catch (error) {
    if (isBug(error)) throw error
    const failure = error instanceof SetupError ? error : new SetupError(reasonOf(error))
    const { key = check.key, reason } = failure
    const location = locationOf(key)
    // The name of a check may be the key.
    const named = key === name || (failure.key ?? location) === undefined ? reason : `${key}: ${reason}`
    const rest = location === undefined ? named : `${location}: ${named}`
    const tls = error instanceof CheckFailure ? error.tls : undefined
    return { result: problemOf(check, 'failed', rest, failure), exitCode: exitCodeOf(error), tls }
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
