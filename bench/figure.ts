import type { Lab } from './lab.ts'

/** One thing that is measured: its numbers, held to thresholds, with the charts and tables behind them. */
export interface Figure {
  /** `P1`: what `--only` names. */
  readonly id: string
  readonly title: string
  /** What is measured against what, for somebody who reads the report and nothing else. */
  readonly about: string
  measure(lab: Lab): Promise<Findings>
}

export interface Findings {
  readonly checks: readonly Check[]
  readonly charts: readonly Chart[]
  readonly tables: readonly Table[]
  /** What has to be known to read them right: a peer that was not the bottleneck, a program that is missing. */
  readonly notes: readonly string[]
  /** Wrong answers. A measurement with any of these is void. */
  readonly faults: readonly string[]
}

/** One number, and what it has to be. */
export interface Check {
  /** Stays the same from release to release: `--compare` goes by it. */
  readonly id: string
  readonly what: string
  readonly unit: Unit
  readonly better: 'more' | 'less'
  /** The threshold, and what is hoped for beyond it. */
  readonly reach?: number | undefined
  readonly aim?: number | undefined
  /** Median of the rounds; undefined where it could not be measured. */
  readonly value: number | undefined
  /** The lowest and the highest round. */
  readonly range?: Range | undefined
  /** Where another run's value can be held against this one. */
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

/** A group of bars for each row, one bar for each series. */
export interface BarChart {
  readonly kind: 'bars'
  readonly title: string
  readonly unit: string
  readonly series: readonly string[]
  readonly rows: readonly BarRow[]
  /** A line across all bars: a limit. */
  readonly mark?: { readonly value: number; readonly label: string }
}

export interface BarRow {
  readonly label: string
  /** Postern's own rows stand out. */
  readonly ours: boolean
  readonly values: readonly (number | undefined)[]
  /** Of the first series. */
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
