import type { LogSink } from '../record/log.ts'

/** What a command needs of the process that runs it; `main.ts` is the only one that has a process. */
export interface CommandIo {
  readonly stdout: { readonly write: (text: string) => unknown }
  readonly stderr: { readonly write: (text: string) => unknown }
  readonly env: Readonly<Record<string, string | undefined>>
}

/** What a command that runs until it is told to stop needs besides. */
export interface ServiceIo extends CommandIo {
  /** Where the log goes. */
  readonly logSink: LogSink
  /** Calls back each time the operator wants the program to stop (SIGTERM, SIGINT). */
  readonly onStop: (listener: () => void) => void
  /** Calls back with what nobody caught, which then does not end the process. */
  readonly onCrash: (listener: (error: unknown) => void) => void
  /** Calls back each time the operator wants the configuration read anew (SIGHUP). */
  readonly onReload: (listener: () => void) => void
}

/** 0 stopped on purpose, 1 failed while running, 2 bad usage or configuration. */
export type ExitCode = 0 | 1 | 2
