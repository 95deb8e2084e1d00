import { writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import type { LogSettings, LogSink, OpenLog } from '../record/log.ts'
import { codeOf, reasonOf } from '../system/setup-error.ts'

export interface Output {
  /** Returns when the text is written whole. Never throws: a failure is kept for the end of the command. */
  readonly write: (text: string) => void
  readonly isTTY: boolean
}

/** An output that also takes bytes that are no text, such as a body of a device. */
export interface ByteOutput extends Output {
  readonly write: (data: string | Uint8Array) => void
}

export interface Outputs {
  readonly stdout: ByteOutput
  readonly stderr: Output
  /**
   * Calls back at the first failure, such as a write to a pipe without a reader, or at once if it has already happened. Long-running
   * commands stop then.
   */
  readonly onLostOutput: (listener: (error: unknown) => void) => void
  /** The first failure; undefined while all texts are written. */
  readonly lostOutput: () => unknown
}

/** How long to wait for a terminal or pipe that is full (ms). */
const BUSY = 10

/**
 * Opens standard output and standard error for commands. Node's own streams can lose text: `process.exit` drops the text that a pipe has
 * not taken yet, and on a full disk a file gets a part of a text without an error.
 */
export function openOutputs(): Outputs {
  const listeners: ((error: unknown) => void)[] = []
  let lost: unknown
  function output(fd: number): ByteOutput {
    return {
      write(data) {
        try {
          writeWhole(fd, Buffer.from(data))
        } catch (error) {
          if (lost !== undefined) return
          lost = error
          for (const listener of listeners) listener(error)
        }
      },
      isTTY: isatty(fd),
    }
  }
  return {
    stdout: output(1),
    stderr: output(2),
    onLostOutput: (call) => (lost === undefined ? void listeners.push(call) : call(lost)),
    lostOutput: () => lost,
  }
}

function writeWhole(fd: number, bytes: Buffer): void {
  for (let written = 0; written < bytes.length; ) {
    try {
      written += writeSync(fd, bytes, written)
    } catch (error) {
      // Another program with the same pipe may have made its writes non-blocking.
      if (codeOf(error) !== 'EAGAIN') throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY)
    }
  }
}

/** The exit code that shells show for a program that SIGPIPE has ended. */
const BROKEN_PIPE = 141

/**
 * The exit code of a command that ended with `code`: another one if its output is lost. A reader that has left is no fault, so it is not
 * reported. Any other failure is reported on standard error.
 */
export function exitCodeWith(command: string, code: number, { stderr, lostOutput }: Outputs): number {
  if (lostOutput() === undefined) return code
  if (codeOf(lostOutput()) === 'EPIPE') return BROKEN_PIPE
  stderr.write(`${command}: ${lostReason(lostOutput())}\n`)
  return 1
}

/** Why a text could not be written, as a clause. */
export function lostReason(error: unknown): string {
  return `cannot write the output: ${reasonOf(error)}`
}

/** Loads and opens the log of a long-running command. Its code is loaded here, because no other command has a log. */
export async function loadLog(settings: LogSettings, sink: LogSink): Promise<OpenLog> {
  const { openLog } = await import('../record/log.ts')
  return openLog(settings, sink)
}

const WIDTH = 80

/** How commander writes help and errors. If one of these is missing, commander opens Node's streams, which make a pipe non-blocking. */
export function helpOutput(io: Pick<Outputs, 'stdout' | 'stderr'>): object {
  return {
    writeOut: (text: string) => io.stdout.write(text),
    writeErr: (text: string) => io.stderr.write(text),
    getOutHelpWidth: () => WIDTH,
    getErrHelpWidth: () => WIDTH,
    getOutHasColors: () => false,
    getErrHasColors: () => false,
  }
}
