import { reasonOf } from '../system/node-permission.ts'
import { isBug, SetupError } from '../system/setup-error.ts'
import type { CommandIo } from './io.ts'

/** 2 for what the operator has to mend before a start can succeed, 1 for everything else that failed. */
export function exitCodeOf(error: unknown): 1 | 2 {
  return error instanceof SetupError ? error.exitCode : 1
}

/** Says what a command failed of, and gives the exit code for it. Only a defect of ours shows its stack. */
export function reportFailure(command: string, error: unknown, { stderr }: Pick<CommandIo, 'stderr'>): 1 | 2 {
  const problems = error instanceof SetupError ? error.problems : [describe(error)]
  for (const problem of problems) stderr.write(`postern ${command}: ${problem}\n`)
  return exitCodeOf(error)
}

function describe(error: unknown): string {
  return error instanceof Error && isBug(error) ? (error.stack ?? error.message) : reasonOf(error)
}
