import { type DestinationStream, type Logger, pino } from 'pino'
import { type Clock, systemClock, waitAtMost } from '../system/clock.ts'
import { type Severity, withSeverity } from '../system/journald.ts'

export type { Logger } from 'pino'

/** The message of the line that has the number of dropped lines. */
export const DROPPED = 'log lines were dropped: nobody read them'

export interface LogSettings {
  readonly level: string
  /** `auto`: readable on a terminal, JSON otherwise. */
  readonly format: 'auto' | 'json' | 'pretty'
}

export interface LogSink {
  readonly terminal: boolean
  /** The file descriptor of the log. */
  readonly fd: number
  /** True if journald reads the log: then each line carries its severity. */
  readonly journal?: boolean
}

/** Lines are buffered until they have this size (bytes) or `FLUSH_INTERVAL` (ms) has passed. A crash flushes the buffer. */
const BUFFER_SIZE = 64 * 1024
const FLUSH_INTERVAL = 1_000
/** The deadline for the last lines (ms). */
const LAST_FLUSH = 2_000

/** Lines are dropped while more bytes than this wait to be written, because the reader of a pipe or the disk is too slow. */
const MOST_UNWRITTEN = 2 * 1024 * 1024

/** The most bytes of UTF-8 for one UTF-16 code unit. */
const MAX_BYTES_PER_UNIT = 3

/** Where the lines of a log go. Only the access log writes to it past pino. */
export interface LogDestination extends AsyncDisposable {
  /** Writes a whole line of JSON, with its line end. */
  readonly write: (line: string) => void
  /** As `write`, in half the time, for a line of ASCII that is shorter than the buffer: cheap enough for the line of every request. */
  readonly writeAscii: (line: string) => void
  /** Prepares another format. The result has it in effect, from the next line on. */
  readonly reformat: (format: LogSettings['format']) => Promise<() => void>
  /** The bytes that wait to be written. */
  readonly unwritten: () => number
  /** Called by `log.flush()`. */
  readonly flush: (done?: (error?: Error) => void) => void
  /**
   * Writes the last lines before the process ends. If that takes too long (full disk, blocked reader), the lines are dropped: pino would
   * otherwise retry without end when the process exits.
   */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

export interface OpenLog {
  readonly log: Logger
  readonly destination: LogDestination
}

/** A log with one JSON object on each line, or readable text on a terminal. */
export async function openLog(
  { level, format }: LogSettings,
  sink: LogSink,
  clock: Clock = systemClock,
): Promise<OpenLog> {
  const destination = bufferedDestination(clock, sink, await readableIn(format, sink))
  return { log: createLogOn(level, destination), destination }
}

/** A log on a stream of a program, or of a test: without a buffer, and always JSON. */
export function openLogOn(level: string, stream: DestinationStream): OpenLog {
  const write = (line: string): void => stream.write(line)
  const destination: LogDestination = {
    write,
    writeAscii: write,
    reformat: async () => () => {},
    unwritten: () => 0,
    flush: (done) => done?.(),
    [Symbol.asyncDispose]: async () => {},
  }
  return { log: createLogOn(level, destination), destination }
}

/** A log for those parts that only write lines. */
export function createLogOn(level: string, stream: DestinationStream): Logger {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, stream)
}

/** Makes a text for people of a line; undefined for JSON. */
type Readable = ((line: string) => string) | undefined

async function readableIn(format: LogSettings['format'], { terminal }: LogSink): Promise<Readable> {
  const isReadable = format === 'pretty' || (format === 'auto' && terminal)
  // Loaded here, because a service logs JSON.
  return isReadable ? (await import('./readable-lines.ts')).readableLines(terminal) : undefined
}

/** The severities of pino's levels by their first digit. */
const SEVERITIES: Readonly<Record<string, Severity>> = { 6: 3, 5: 3, 4: 4, 3: 6 }

const LEVEL = '{"level":'

/** Adds the severity that journald reads to a line, or to `text`, the readable form of the line. */
function forJournal(line: string, text?: string): string {
  const digit = line.startsWith(LEVEL) ? line.charAt(LEVEL.length) : ''
  const severity = SEVERITIES[digit] ?? 7
  // A line of JSON has no line end inside. A search for one would cost every request, so only a readable text is searched.
  return text === undefined ? `<${severity}>${line}` : withSeverity(severity, text)
}

/**
 * Encodes lines into one buffer and writes them together: a buffer for each line, and frequent writes, made up half of the cost of a line.
 * A full disk or a paused reader neither ends the process nor delays a request.
 *
 * @param readable turns a line into a readable text. Such texts are written without delay, because a person reads them
 */
function bufferedDestination(clock: Clock, sink: LogSink, readable: Readable): LogDestination {
  /** Adds what journald needs to a line, or to the text for people that was made of it; of ASCII it makes ASCII. */
  const marked = sink.journal === true ? forJournal : undefined
  const file = pino.destination({
    fd: sink.fd,
    sync: false,
    minLength: BUFFER_SIZE,
    maxWrite: 2 * BUFFER_SIZE,
    contentMode: 'buffer',
  })
  let unwritten = 0
  let dropped = 0
  function writeBytes(bytes: Buffer): void {
    unwritten += bytes.length
    // Proof of the cast: with this `contentMode`, `write` takes buffers, though its type says string.
    file.write(bytes as never)
  }
  // A `flush` during a write does nothing. Without the flush on `drain`, the remaining bytes would wait for the next line.
  file.on('write', (bytes) => {
    unwritten -= bytes
  })
  file.on('drain', () => {
    if (unwritten > 0) file.flush()
    if (failure !== undefined) tellFailure(failure)
    if (dropped > 0) tellDropped()
  })
  /** Why the last write failed. Its bytes are kept for the next write. */
  let failure: Error | undefined
  /** `retrying`: a write has failed, and a timer runs until the next attempt. `abandoned`: nothing more is written. */
  let state: 'writing' | 'retrying' | 'abandoned' = 'writing'
  file.on('error', (error) => {
    failure = error
    if (state !== 'writing') return
    state = 'retrying'
    clock.after(FLUSH_INTERVAL, () => {
      if (state === 'retrying') state = 'writing'
      file.flush()
    })
  })
  const buffer = Buffer.allocUnsafe(BUFFER_SIZE)
  let length = 0

  function drainBuffer(): void {
    if (length > 0) writeBytes(Buffer.from(buffer.subarray(0, length)))
    length = 0
  }

  function writeOut(done?: (error?: Error) => void): void {
    drainBuffer()
    file.flush(done)
  }

  /** True while a timer runs, which it does only while lines wait in the buffer: an idle process is not woken. */
  let timed = false
  const onInterval = (): void => {
    timed = false
    if (length > 0) writeOut()
  }
  // pino calls `flushSync` when the process ends. The lines in the buffer above must reach the file first.
  const flushSync = file.flushSync.bind(file)
  file.flushSync = () => {
    if (state === 'abandoned') return
    drainBuffer()
    flushSync()
  }

  function tellFailure({ message }: Error): void {
    failure = undefined
    const [time, reason] = [pino.stdTimeFunctions.isoTime(), JSON.stringify(message)]
    const msg = 'the log could not be written; its lines waited until now'
    writeLine(`{"level":50${time},"reason":${reason},"msg":"${msg}"}\n`)
  }

  /** Writes the number of dropped lines, once the reader takes lines again. */
  function tellDropped(): void {
    const count = dropped
    dropped = 0
    const time = pino.stdTimeFunctions.isoTime()
    writeLine(`{"level":40${time},"count":${count},"msg":"${DROPPED}"}\n`)
  }

  /** Makes room for one more line of at most `most` bytes, and starts the timer. False: the line is dropped, and counted. */
  function reserve(most: number): boolean {
    if (unwritten > MOST_UNWRITTEN) {
      dropped += 1
      return false
    }
    if (length + most > BUFFER_SIZE) writeOut()
    if (!timed) {
      timed = true
      clock.after(readable === undefined ? FLUSH_INTERVAL : 0, onInterval)
    }
    return true
  }

  function write(text: string): void {
    const most = MAX_BYTES_PER_UNIT * text.length
    if (!reserve(most)) return
    if (most > BUFFER_SIZE) writeBytes(Buffer.from(text))
    else length += buffer.write(text, length)
  }

  function writeLine(line: string): void {
    if (readable === undefined && marked === undefined) write(line)
    else write(formOf(line))
  }

  function formOf(line: string): string {
    const text = readable?.(line)
    return marked === undefined ? (text ?? line) : marked(line, text)
  }

  /** As `write`, in half the time, for a line of at most `BUFFER_SIZE` bytes of ASCII. */
  function writeAscii(line: string): void {
    if (readable !== undefined) {
      write(formOf(line))
      return
    }
    const form = marked === undefined ? line : marked(line)
    if (reserve(form.length)) length += buffer.write(form, length, 'latin1')
  }

  return {
    write: writeLine,
    writeAscii,
    async reformat(format) {
      const next = await readableIn(format, sink)
      return () => {
        readable = next
      }
    },
    unwritten: () => unwritten + length,
    flush: writeOut,
    async [Symbol.asyncDispose]() {
      let isWritten = false
      const flushed = new Promise<void>((resolve) => {
        writeOut((error) => {
          isWritten = error === undefined || error === null
          resolve()
        })
      })
      await waitAtMost(clock, LAST_FLUSH, flushed)
      if (!isWritten) state = 'abandoned'
    },
  }
}
