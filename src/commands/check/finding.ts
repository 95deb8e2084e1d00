import { wrapped } from '../columns.ts'

/** A finding of `check`: a text if all is well, otherwise a problem. */
export type Finding = string | Warning | Failure

/** The consequence of a problem, and the remedy; each a clause. If one is missing, that of the check's `About` is used. */
interface Hints {
  readonly meaning?: string | undefined
  readonly remedy?: string | undefined
  /** A line of YAML for the section of the service, with which the problem is gone. The remedy says it in words. */
  readonly line?: string | undefined
}

/** The subject works, but the operator has to act soon. */
export interface Warning extends Hints {
  readonly warning: string
  readonly login?: DeviceLogin | undefined
}

interface Failure extends Hints {
  readonly failed: string
  /** The value of `upstream.tls` with which the check succeeds. */
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

/**
 * A line for the result, and below a problem an indented line with its consequence and its remedy. `columns`: the result of `columnsOf`.
 */
export function describeResult(
  { name, result, message, meaning, remedy }: CheckResult,
  columns: number,
): string {
  const indent = LABELS[result].length + 1
  const hints =
    meaning === null ? '' : `${' '.repeat(indent)}${wrapped(`${meaning}; ${remedy}`, indent, columns)}\n`
  return `${LABELS[result]} ${wrapped(`${name}: ${message}`, indent, columns)}\n${hints}`
}
