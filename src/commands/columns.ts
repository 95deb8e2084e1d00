// How commands lay out text for a terminal. A line has at most 80 columns, the default width of a terminal.

export const WIDTH = 80

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A length of time (ms) in its largest unit: `12s`, `3m`, `5h`, `61d`. */
export function spanOf(time: number): string {
  if (time < MINUTE) return `${Math.max(0, Math.floor(time / SECOND))}s`
  if (time < HOUR) return `${Math.floor(time / MINUTE)}m`
  return time < 2 * DAY ? `${Math.floor(time / HOUR)}h` : `${Math.floor(time / DAY)}d`
}

/** A time (ms since the Unix epoch) to the second: `2026-11-22T08:16:12Z`. */
export function timeOf(time: number): string {
  return `${new Date(time).toISOString().slice(0, -'.000Z'.length)}Z`
}

/** Lays out rows of cells. Each column but the last is as wide as its widest cell. */
export function linesOf(rows: readonly (readonly string[])[]): string[] {
  const columns = Math.max(...rows.map((row) => row.length)) - 1
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  )
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** Breaks a text into lines between words. `indent`: the columns in front of each line; the caller writes those of the first line. */
export function wrapped(text: string, indent: number): string {
  const width = WIDTH - indent
  const lines: string[] = ['']
  for (const word of text.split(' ')) {
    const last = lines.at(-1) ?? ''
    if (last !== '' && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`
    else {
      const parts = word.match(new RegExp(`.{1,${width}}`, 'gsu')) ?? ['']
      if (last === '') lines.pop()
      lines.push(...parts)
    }
  }
  return lines.join(`\n${' '.repeat(indent)}`)
}
