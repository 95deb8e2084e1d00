import type { Logger } from '../record/log.ts'
import type { Clock } from '../system/clock.ts'
import type { TimelineEntry } from './model.ts'

export type Timeline = ReturnType<typeof createTimeline>

const KEPT = 100

/** The longest texts of an entry, in characters. */
const LONGEST_TEXT = 256
const LONGEST_DETAILS = 256

type Fields = Readonly<Record<string, unknown>>

/** The methods of pino from `info` on, and the levels of their entries. Access lines bypass them, so the timeline has none. */
const LEVELS = { info: 'info', warn: 'warn', error: 'error', fatal: 'error' } as const

/**
 * Keeps the last lines of the log that are not about requests, from now on, even those that `log.level` keeps out of the log. It leaves out
 * the sums of refusals, because the points count refusals. Call it at most once for a log.
 */
export function createTimeline(log: Logger, clock: Clock) {
  const entries: TimelineEntry[] = []
  let lastId = 0
  let closed = false

  function add(level: TimelineEntry['level'], message: string, fields: Fields): void {
    if (closed || 'refusal' in fields) return
    const text = printable(message, LONGEST_TEXT)
    const details = detailsOf(fields)
    const before = entries.at(-1)
    const time = clock.wall()
    if (before?.level === level && before.text === text && before.details === details) {
      entries[entries.length - 1] = { ...before, time, times: before.times + 1 }
      return
    }
    if (entries.length === KEPT) entries.shift()
    lastId += 1
    entries.push({ id: lastId, time, level, text, details, times: 1 })
  }

  /** Wraps the methods of a logger. A child inherits them. pino replaces them when a level is set, and emits `level-change`. */
  function observe(logger: Logger): void {
    for (const method of ['info', 'warn', 'error', 'fatal'] as const) {
      const write: (this: Logger, ...line: unknown[]) => void = logger[method]
      logger[method] = function (this: Logger, ...line: unknown[]) {
        write.apply(this, line)
        add(LEVELS[method], ...partsOf(line, this.bindings()))
      }
    }
  }

  observe(log)
  log.on('level-change', (_level, _value, _previous, _previousValue, logger) => observe(logger))
  return {
    /** The entries with an id above `after`, oldest first. */
    entries: (after: number): readonly TimelineEntry[] => entries.filter(({ id }) => id > after),
    [Symbol.dispose](): void {
      closed = true
    },
  }
}

/** Message and fields of pino's arguments: an object or an error, then the message; or the message alone. */
function partsOf([first, second]: readonly unknown[], bindings: Fields): [text: string, fields: Fields] {
  if (typeof first === 'string') return [first, bindings]
  const isError = first instanceof Error
  const own = isError ? { err: first } : { ...Object(first) }
  return [String(second ?? (isError ? first.message : '')), { ...bindings, ...own }]
}

function detailsOf(fields: Fields): string {
  const shown = Object.entries(fields).flatMap(([name, value]) => {
    const text = textOf(value)
    if (text === '') return []
    return [name === 'err' ? text : `${name}: ${text}`]
  })
  return printable(shown.join(', '), LONGEST_DETAILS)
}

/** The text of a field; of an error, its message without the stack. */
function textOf(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (value instanceof Error) return value.message
  if (Array.isArray(value)) return value.map(textOf).join(', ')
  return typeof value === 'object' ? jsonOf(value) : String(value)
}

/** Empty for an object that refers to itself: a line of the log must never fail. */
function jsonOf(value: object): string {
  try {
    return JSON.stringify(value)
  } catch {
    return ''
  }
}

/** Text of at most `longest` characters. Control characters and bidirectional marks become blanks: they could hide or reorder text. */
function printable(text: string, longest: number): string {
  const clean = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ')
  return clean.length > longest ? `${clean.slice(0, longest - 3).toWellFormed()}...` : clean
}
