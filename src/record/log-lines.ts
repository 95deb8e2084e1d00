import type { Logger } from './log.ts'

/** A line of the log: its message and its other fields. */
export interface LogLine {
  readonly level: 'info' | 'warn' | 'error'
  readonly text: string
  readonly fields: Readonly<Record<string, unknown>>
}

const LEVELS = { info: 'info', warn: 'warn', error: 'error', fatal: 'error' } as const

/**
 * Calls `listener` with each line of `log` and of the children that it gets from now on, also with those that `log.level` keeps out of
 * the log. Lines below `info` and those of `lineWriter` are not among them. Call it at most once for a log.
 */
export function onLogLine(log: Logger, listener: (line: LogLine) => void): { close(): void } {
  let closed = false

  /** A child inherits the methods of its parent. pino makes them anew when a level is set, and tells of it by `level-change`. */
  function observe(logger: Logger): void {
    for (const method of ['info', 'warn', 'error', 'fatal'] as const) {
      const write: (this: Logger, ...line: unknown[]) => void = logger[method]
      logger[method] = function (this: Logger, ...line: unknown[]) {
        write.apply(this, line)
        if (!closed) listener({ level: LEVELS[method], ...partsOf(line, this.bindings()) })
      }
    }
  }

  observe(log)
  log.on('level-change', (_level, _value, _previous, _previousValue, logger) => observe(logger))
  return {
    close() {
      closed = true
    },
  }
}

/** pino's arguments: an object or an error, then the message; or the message alone. */
function partsOf([first, second]: readonly unknown[], bindings: LogLine['fields']): Omit<LogLine, 'level'> {
  if (typeof first === 'string') return { text: first, fields: bindings }
  const own = first instanceof Error ? { err: first } : { ...Object(first) }
  return {
    text: String(second ?? (first instanceof Error ? first.message : '')),
    fields: { ...bindings, ...own },
  }
}
