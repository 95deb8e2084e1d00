import { wrapped } from '../columns.ts'

/** What `check` finds: all is well, as the text says, or a problem. */
export type Finding = string | Warning | Failure

/** What a problem means, and what to do; each a clause. Without one, that of the check counts. */
interface Hints {
  readonly meaning?: string | undefined
  readonly remedy?: string | undefined
}

/** It works, and the operator has to act soon. */
export interface Warning extends Hints {
  readonly warning: string
  readonly login?: DeviceLogin | undefined
}

interface Failure extends Hints {
  readonly failed: string
  /** The value of `upstream.tls` with which it succeeds. */
  readonly tls?: string | undefined
  /** 2 if `serve` would not start; default: 1. */
  readonly exitCode?: 1 | 2
}

/** The kind of a login that the device asks for, and that `upstream.auth` does not answer. */
export type DeviceLogin = 'basic' | 'digest'

/** A result as `check --json` prints it. `meaning` and `remedy` are null if all is well. */
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
