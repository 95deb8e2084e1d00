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

/** Says what went wrong, without a stack where the cause is known, and gives the exit code for it. */
export function reportFailure(
  command: string,
  error: unknown,
  { stderr }: Pick<CommandIo, 'stderr'>,
): ExitCode {
  const problems = setupProblems(error)
  if (problems === undefined) {
    stderr.write(`postern ${command}: ${reasonOf(error)}\n`)
    return 1
  }
  for (const problem of problems) stderr.write(`postern ${command}: ${problem}\n`)
  return 2
}
