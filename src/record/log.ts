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
const GATHERED = 64 * 1024
const FLUSH_INTERVAL = 1_000
/** How long the last lines may take to be written (ms). */
const LAST_FLUSH = 2_000

/** The most bytes that a character of a string becomes. */
const WIDEST = 3

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

/**
 * Gathers lines as the bytes that they become, in one place: to give each a buffer of its own, and to write often, took
 * half of what a line costs.
 */
function gatheringStream(sink: LogSink): DestinationStream & Flushable {
  const file = destination({
    fd: sink.fd,
    sync: false,
    minLength: GATHERED,
    maxWrite: 2 * GATHERED,
    contentMode: 'buffer',
  })
  let unwritten = 0
  function pass(bytes: Buffer): void {
    unwritten += bytes.length
    // In this mode it takes buffers, whatever its types say.
    file.write(bytes as never)
  }
  // A `flush` during a write does nothing; without this one, its bytes would wait for the next line.
  file.on('write', (bytes) => {
    unwritten -= bytes
  })
  file.on('drain', () => {
    if (unwritten > 0) file.flush()
  })
  const gathered = Buffer.allocUnsafe(GATHERED)
  let length = 0

  function passOn(): void {
    if (length > 0) pass(Buffer.from(gathered.subarray(0, length)))
    length = 0
  }

  function writeOut(done?: (error?: Error) => void): void {
    passOn()
    file.flush(done)
  }

  setInterval(() => {
    if (length > 0) writeOut()
  }, FLUSH_INTERVAL).unref()
  // pino calls this when the process ends, and knows only what it was passed.
  const flushSync = file.flushSync.bind(file)
  let abandoned = false
  file.flushSync = () => {
    if (abandoned) return
    passOn()
    flushSync()
  }

  return {
    write(line) {
      const most = WIDEST * line.length
      if (length + most > GATHERED) writeOut()
      if (most > GATHERED) pass(Buffer.from(line))
      else length += gathered.write(line, length)
    },
    flush: writeOut,
    abandon() {
      abandoned = true
    },
  }
}

/** What `log.flush()` calls. */
interface Flushable {
  flush(done?: (error?: Error) => void): void
  /** Lines that are not written yet are lost: nothing waits for them any more. */
  abandon(): void
}

/**
 * Writes the last lines before the process ends. Where they cannot be written within `patience` ms (a full disk, a reader
 * that stands still), they are abandoned: pino would otherwise retry without end when the process exits.
 */
export async function finishLog(log: Logger, patience: number = LAST_FLUSH): Promise<void> {
  const written = new Promise<boolean>((resolve) => {
    log.flush((error) => resolve(error === undefined || error === null))
    setTimeout(() => resolve(false), patience)
  })
  const stream: Partial<Flushable> = Reflect.get(log, pino.symbols.streamSym)
  if (!(await written)) stream.abandon?.()
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
