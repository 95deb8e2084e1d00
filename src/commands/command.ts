import type { LogSettings, OpenLog } from '../record/log.ts'
import type { Clock } from '../system/clock.ts'
import { isJournal, withSeverity } from '../system/journald.ts'
import type { PermissionedProcess } from '../system/permissions.ts'
import { firstOf, isBug, reasonOf, SetupError } from '../system/setup-error.ts'
import { columnsOf, wrapped } from './columns.ts'
import type { Outputs } from './output.ts'
import type { Terminal } from './prompt.ts'

/** The parts of the process that a command uses. Only `main.ts` has access to `process`. */
export interface CommandIo {
  readonly stdout: { readonly write: (text: string) => unknown; readonly isTTY?: boolean }
  readonly stderr: { readonly write: (text: string) => unknown; readonly isTTY?: boolean }
  readonly env: Readonly<Record<string, string | undefined>>
  /** The configuration file that is used if none is named and this one exists. */
  readonly defaultConfig?: string
  /** The state folder of an installed package. The folder of each instance is below it. */
  readonly defaultState?: string
  /** The working directory; undefined if it has been removed. */
  readonly folder?: string | undefined
  /** The folder that exists where systemd runs the services of this machine; default: its own. */
  readonly systemd?: string
  /** The id of the user that runs the program. */
  readonly user?: number | undefined
  /** The folder of the pages, if a package has installed them. */
  readonly pages?: string
}

/** The further parts for a command that runs until it is stopped. */
export interface DaemonIo extends CommandIo {
  readonly clock: Clock
  readonly openLog: (settings: LogSettings) => Promise<OpenLog>
  /** Calls back on each signal to stop (SIGTERM, SIGINT). */
  readonly onStop: (listener: () => void) => void
  readonly onCrash: (listener: (error: unknown) => void) => void
  readonly onReload: (listener: () => void) => void
  readonly permissions: PermissionedProcess
}

export interface ProgramIo extends CommandIo, Outputs, Pick<DaemonIo, 'clock' | 'permissions'> {
  readonly stdout: Outputs['stdout']
  readonly stderr: Outputs['stderr']
  /** A function, because Node opens standard input at the first look. */
  readonly stdin: () => Terminal['stdin']
  /** Called by a command that runs until it is stopped. Other commands end on a signal, as programs do by default. */
  readonly daemon: () => DaemonIo
  readonly onSignals: (...signals: readonly NodeJS.Signals[]) => DaemonIo['onStop']
  /** The words after the name of the program on the command line. */
  readonly args: readonly string[]
  /** The path of Node, or undefined in the single executable. */
  readonly node: string | undefined
  /** The words that a person types to start this program here, for commands to copy. */
  readonly typed: string
  /** The words that start this program again. */
  readonly program: readonly string[]
}

/** 0 stopped on purpose, 1 failed while running, 2 bad usage or configuration. */
export type ExitCode = 0 | 1 | 2

export const STANDARD_ERROR = 2

/** 2 for a problem that the operator has to fix before a start can succeed, 1 for any other failure. */
export function exitCodeOf(error: unknown): 1 | 2 {
  const first = firstOf(error)
  return first instanceof SetupError ? first.exitCode : 1
}

/** Writes why a command failed and returns its exit code. Only a bug is written with its stack. For journald the lines have level error. */
export function reportFailure(
  command: string,
  error: unknown,
  { stderr, env }: Pick<CommandIo, 'stderr' | 'env'>,
): 1 | 2 {
  const first = firstOf(error)
  const problems = first instanceof SetupError ? first.problems : [describe(first)]
  const journal = isJournal(STANDARD_ERROR, env)
  for (const problem of problems) {
    const text = `${wrapped(`postern ${command}: ${problem}`, 0, columnsOf(stderr))}\n`
    stderr.write(journal ? withSeverity(3, text) : text)
  }
  return exitCodeOf(first)
}

function describe(error: unknown): string {
  return error instanceof Error && isBug(error) ? (error.stack ?? error.message) : reasonOf(error)
}
