import type { Findings } from './figure.ts'
import { rangeText, rounded } from './format.ts'
import type { MeasuredFigure } from './result.ts'
import { boundOf, type Verdict, verdictOf } from './verdict.ts'

/** Lays rows out in columns for a terminal. Columns whose every cell below the head is a number are set to the right. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => (row[column] ?? '').length)),
  )
  const numeric = head.map((_, column) => rows.every((row) => /^(?:[\d.,:+ -]*)$/.test(row[column] ?? '')))
  const line = (row: readonly string[]): string =>
    widths
      .map((width, column) => {
        const cell = row[column] ?? ''
        return numeric[column] ? cell.padStart(width) : cell.padEnd(width)
      })
      .join('  ')
      .trimEnd()
  return [line(head), widths.map((width) => '-'.repeat(width)).join('  '), ...rows.map(line)].join('\n')
}

/** The tables of a figure, its notes, and what is wrong with it. */
export function formatFindings({
  tables,
  notes,
  faults,
}: Pick<Findings, 'tables' | 'notes' | 'faults'>): string {
  return [
    ...tables
      .filter(({ rows }) => rows.length > 0)
      .map(({ caption, head, rows }) => `\n${caption}\n\n${formatTable(head, rows)}\n`),
    ...notes.map((note) => `note  ${note}`),
    ...faults.map((fault) => `FAIL  ${fault}`),
  ].join('\n')
}

/** Every threshold, and whether it was reached. */
export function formatChecks(figures: readonly MeasuredFigure[]): string {
  const rows = figures.flatMap(({ checks }) =>
    checks.map((check) => [
      VERDICTS[verdictOf(check)],
      check.id,
      check.what,
      check.value === undefined ? '-' : `${rounded(check.value)} ${check.unit}`,
      rangeText(check.range),
      boundOf(check),
    ]),
  )
  return formatTable(['', 'figure', 'what', 'value', 'rounds', 'threshold'], rows)
}

export const VERDICTS: Readonly<Record<Verdict, string>> = {
  aim: 'pass, aim reached',
  pass: 'pass',
  short: 'SHORT',
  measured: '',
  absent: 'not measured',
}
