import { boundOf, type Check, type Findings, type MeasuredFigure, type Verdict, verdictOf } from './figure.ts'

/** A number with this many decimals; `-` if there is none. */
export function fixed(value: number, digits: number): string {
  return Number.isFinite(value) ? value.toFixed(digits) : '-'
}

export function percent(part: number): string {
  return Number.isFinite(part) ? `${fixed(part * 100, 0)} %` : '-'
}

/** Three significant digits, or all digits before the point: 0.0234, 1.25, 48.1, 1534. Integers stay unchanged. */
export function rounded(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return '-'
  if (Number.isInteger(value)) return String(value)
  const before = Math.floor(Math.log10(Math.abs(value))) + 1
  return value.toFixed(Math.min(4, Math.max(0, 3 - before)))
}

/** Seconds as `3:07`. */
export function clockTime(seconds: number): string {
  const whole = Math.floor(seconds)
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`
}

/** Formats rows in columns for a terminal. Columns with only numbers below the head are aligned right. */
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

/** The tables, notes and faults of a figure. */
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

/** A table of all checks and their verdicts. */
export function formatChecks(figures: readonly MeasuredFigure[]): string {
  const rows = figures.flatMap(({ checks }) =>
    checks.map((check) => [VERDICTS[verdictOf(check)], check.id, check.what, ...checkCells(check)]),
  )
  return formatTable(['', 'figure', 'what', ...CHECK_HEAD], rows)
}

export const CHECK_HEAD = ['value', 'rounds', 'threshold'] as const

/** The value of a check, its lowest and highest round if they differ, and its threshold. */
export function checkCells(check: Check): readonly [value: string, rounds: string, threshold: string] {
  const { value, range = [0, 0], unit } = check
  const known = value === undefined ? '-' : `${rounded(value)} ${unit}`
  return [known, range[0] === range[1] ? '' : range.map(rounded).join(' to '), boundOf(check)]
}

export const VERDICTS: Readonly<Record<Verdict, string>> = {
  aim: 'pass, aim reached',
  pass: 'pass',
  short: 'SHORT',
  measured: '',
  absent: 'not measured',
}
