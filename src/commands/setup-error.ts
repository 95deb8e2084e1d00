import { ConfigError } from '../config/config-error.ts'
import { reasonOf } from '../http/node-permission.ts'
import { TlsMaterialError } from '../listen/tls-material.ts'
import { PasswordSourceError } from '../password/source.ts'
import { StateError } from '../state.ts'
import { UpstreamSettingError } from '../upstream/settings.ts'
import type { CommandIo, ExitCode } from './io.ts'

/** What the operator has to mend before a start can succeed, a line each. */
function setupProblems(error: unknown): readonly string[] | undefined {
  if (error instanceof ConfigError) return error.problems
  const known = [TlsMaterialError, PasswordSourceError, StateError, UpstreamSettingError]
  return known.some((kind) => error instanceof kind) ? [(error as Error).message] : undefined
}

/** 2 for what the operator has to mend before a start can succeed, 1 for everything else that failed. */
export function exitCodeOf(error: unknown): 1 | 2 {
  return setupProblems(error) === undefined ? 1 : 2
}

/** Says what went wrong, without a stack where the cause is known, and gives the exit code for it. */
export function reportFailure(
  command: string,
  error: unknown,
  { stderr }: Pick<CommandIo, 'stderr'>,
): ExitCode {
  for (const problem of setupProblems(error) ?? [reasonOf(error)]) {
    stderr.write(`postern ${command}: ${problem}\n`)
  }
  return exitCodeOf(error)
}
