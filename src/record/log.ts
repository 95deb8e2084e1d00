import { type DestinationStream, destination, type Logger, pino } from 'pino'

export type { Logger } from 'pino'

export interface LogSettings {
  readonly level: string
  /** `auto`: readable on a terminal, JSON otherwise. */
  readonly format: 'auto' | 'json' | 'pretty'
}

export interface LogSink {
  readonly terminal: boolean
  /** File descriptor that the lines are written to. */
  readonly fd: number
}

/** Lines are gathered up to this many bytes, or a second, before they are written; a crash writes what is left. */
const GATHERED = 15 * 1024
const FLUSH_INTERVAL = 1_000

/** One JSON object a line, or readable text on a terminal. */
export async function createLog({ level, format }: LogSettings, sink: LogSink): Promise<Logger> {
  const readable = format === 'pretty' || (format === 'auto' && sink.terminal)
  return createLogOn(level, readable ? await prettyStream(sink) : gatheringStream(sink))
}

/** A log that writes to the given stream: for tests and for programs that embed the sidecar. */
export function createLogOn(level: string, stream: DestinationStream): Logger {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, stream)
}

function gatheringStream(sink: LogSink): DestinationStream {
  return destination({ fd: sink.fd, sync: false, minLength: GATHERED, periodicFlush: FLUSH_INTERVAL })
}

async function prettyStream(sink: LogSink): Promise<DestinationStream> {
  const { default: pretty } = await import('pino-pretty')
  return pretty({
    destination: sink.fd,
    sync: true,
    colorize: sink.terminal,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
  })
}
