import { readFile } from 'node:fs/promises'

/** What a figure found: its numbers and their thresholds, with tables. */
export interface Findings {
  readonly checks: readonly Check[]
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
export type Unit = '×' | 'ms' | 'µs' | 'B' | 'MiB' | 'KiB'
export type Range = readonly [low: number, high: number]

export interface Table {
  readonly caption: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

/** `short`: worse than the threshold. `measured`: no threshold. `absent`: not measured, for example without a peer. */
export type Verdict = 'aim' | 'pass' | 'short' | 'measured' | 'absent'

/** A value at the threshold passes. */
export function verdictOf({ value, reach, aim, better }: Check): Verdict {
  if (value === undefined) return 'absent'
  const meets = (bound: number): boolean => (better === 'more' ? value >= bound : value <= bound)
  if (aim !== undefined && meets(aim)) return 'aim'
  if (reach === undefined) return 'measured'
  return meets(reach) ? 'pass' : 'short'
}

/** The threshold and the target as text: `≥ 0.6 ×, aim 0.75`. */
export function boundOf({ reach, aim, better, unit }: Check): string {
  const bound = reach === undefined ? [] : [`${better === 'more' ? '≥' : '≤'} ${reach} ${unit}`]
  return [...bound, ...(aim === undefined ? [] : [`aim ${aim}`])].join(', ')
}

/** The machine and the commit that were measured. */
export interface Machine {
  readonly processor: string
  readonly cores: number
  readonly memory: string
  readonly kernel: string
  readonly node: string
  /** Commit of this repository, with `-dirty` if files are changed. */
  readonly commit: string
  readonly loadAverage: number
}

/** The result of one run of the bench: the JSON file, and the data of the page. */
export interface Result {
  /** Version of this format. */
  readonly format: typeof FORMAT
  /** ISO 8601. */
  readonly at: string
  readonly machine: Machine
  readonly loadAfter: number
  readonly device: string
  /** The program that was measured as Postern. */
  readonly program: string
  readonly tools: readonly string[]
  readonly pinned: boolean
  readonly rounds: number
  readonly seconds: number
  readonly quick: boolean
  /** Duration of the run (seconds). */
  readonly took: number
  readonly figures: readonly MeasuredFigure[]
}

export interface MeasuredFigure extends Findings {
  readonly id: string
  readonly title: string
  readonly about: string
  /** Duration (seconds). */
  readonly took: number
}

export const FORMAT = 'postern-bench-1'

/** Reads the result of an earlier run. Throws if the file is something else. */
export async function readResult(file: string): Promise<Result> {
  const value: unknown = JSON.parse(await readFile(file, 'utf8'))
  if (typeof value !== 'object' || value === null || !('format' in value) || value.format !== FORMAT) {
    throw new Error(`${file} is not a result of this bench`)
  }
  return value as Result // only this bench writes files of this format
}
