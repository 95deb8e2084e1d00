import type { Reporter } from '../verdict.ts'
import { announcement, progressLine, verdictLine } from './lines.ts'
import type { Display } from './style.ts'
import { table } from './table.ts'

/**
 * Writes a run as text: what it is going to do, a line for each promise as it is decided, and the table. On a terminal the line of a
 * check that takes long is replaced by the next line; in a log it stays.
 */
export function textReporter(write: (text: string) => unknown, display: Display): Reporter {
  let replaceable = false

  function say(text: string): void {
    write(replaceable ? `${CLEAR_LINE}${text}` : text)
    replaceable = false
  }

  return {
    announce: (plan) => say(`${announcement(plan)}\n`),
    progress(text) {
      const line = progressLine(text)
      if (display.columns === undefined) return say(`${line}\n`)
      say(line.slice(0, display.columns - 1))
      replaceable = true
    },
    decided: (verdict) => say(`${verdictLine(verdict, display)}\n`),
    finished: (report) => say(`\n${table(report, display)}`),
  }
}

const CLEAR_LINE = '\r\x1b[K'
