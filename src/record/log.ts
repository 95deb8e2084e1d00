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

/**
 * Writes a finished line of JSON, its line end included, past pino: for the one kind of line that comes with every
 * request. Ask `isLevelEnabled` first.
 */
export function lineWriter(log: Logger): (line: string) => void {
  // The stream that this very file gave to pino, under a name that pino publishes but leaves out of `Logger`.
  const stream = Reflect.get(log, pino.symbols.streamSym) as DestinationStream
  return (line) => stream.write(line)
}

/** Gathers bytes: gathered text would be measured anew, from its beginning, with every line. */
function gatheringStream(sink: LogSink): DestinationStream & Flushable {
  const file = destination({
    fd: sink.fd,
    sync: false,
    minLength: GATHERED,
    periodicFlush: FLUSH_INTERVAL,
    contentMode: 'buffer',
  })
  // In this mode it takes buffers, whatever its types say.
  const write: (line: Buffer) => boolean = file.write.bind(file) as never
  return {
    write: (line) => write(Buffer.from(line)),
    flush: (done) => file.flush(done),
  }
}

/** What `log.flush()` calls. */
interface Flushable {
  flush(done?: (error?: Error) => void): void
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
