import type { Lab } from './lab.ts'

/** One measurement: its numbers and their thresholds, with charts and tables. */
export interface Figure {
  /** The name for `--only`, such as `P1`. */
  readonly id: string
  readonly title: string
  /** What is measured and compared with what; must be clear to a reader of the report alone. */
  readonly about: string
  measure(lab: Lab): Promise<Findings>
}

export interface Findings {
  readonly checks: readonly Check[]
  readonly charts: readonly Chart[]
  readonly tables: readonly Table[]
  /** Needed to interpret the numbers: a peer that was not the bottleneck, a program that is not installed. */
  readonly notes: readonly string[]
  /** Wrong responses and other failures. A measurement with a fault is invalid. */
  readonly faults: readonly string[]
}

/** One number and its threshold. */
export interface Check {
  /** Stays the same in all releases: `--compare` matches checks by id. */
  readonly id: string
  readonly what: string
  readonly unit: Unit
  readonly better: 'more' | 'less'
  /** The threshold, and a target beyond it. */
  readonly reach?: number | undefined
  readonly aim?: number | undefined
  /** Median of the rounds; undefined if it could not be measured. */
  readonly value: number | undefined
  /** Lowest and highest round. */
  readonly range?: Range | undefined
  /** With which runs `--compare` may compare this value. */
  readonly comparable: 'anywhere' | 'same machine' | 'never'
}

/** `×` is a ratio to a peer of the same run. */
type Unit = '×' | 'ms' | 'µs' | 'ns' | 'B' | 'MiB' | 'KiB'
export type Range = readonly [low: number, high: number]

export interface Table {
  readonly caption: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

export type Chart = BarChart | LineChart

/** Each row is a group of bars, one bar per series. */
export interface BarChart {
  readonly kind: 'bars'
  readonly title: string
  readonly unit: string
  readonly series: readonly string[]
  readonly rows: readonly BarRow[]
  /** A line across all bars, such as a limit. */
  readonly mark?: { readonly value: number; readonly label: string }
}

export interface BarRow {
  readonly label: string
  /** Highlights the rows of Postern. */
  readonly ours: boolean
  readonly values: readonly (number | undefined)[]
  /** Range of the first series. */
  readonly range?: Range | undefined
}

export interface LineChart {
  readonly kind: 'lines'
  readonly title: string
  readonly x: Axis
  readonly y: Axis
  readonly series: readonly Line[]
}

export interface Axis {
  readonly label: string
  readonly scale: 'linear' | 'log'
}

export interface Line {
  readonly name: string
  readonly ours: boolean
  readonly points: readonly (readonly [x: number, y: number])[]
}

/** `short`: worse than the threshold. `measured`: no threshold. `absent`: not measured, for example without a peer. */
export type Verdict = 'aim' | 'pass' | 'short' | 'measured' | 'absent'

/** A value at the threshold passes. */
export function verdictOf({ value, reach, aim, better }: Check): Verdict {
  if (value === undefined || Number.isNaN(value)) return 'absent'
  const meets = (bound: number): boolean => (better === 'more' ? value >= bound : value <= bound)
  if (aim !== undefined && meets(aim)) return 'aim'
  if (reach === undefined) return 'measured'
  return meets(reach) ? 'pass' : 'short'
}

/** The threshold as text: `≥ 0.6 ×, aim 0.75`. */
export function boundOf({ reach, aim, better, unit }: Check): string {
  if (reach === undefined) return ''
  return `${better === 'more' ? '≥' : '≤'} ${reach} ${unit}${aim === undefined ? '' : `, aim ${aim}`}`
}
