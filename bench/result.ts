import { readFile } from 'node:fs/promises'
import type { Figure, Findings } from './figure.ts'
import type { Machine } from './machine.ts'

/** What one run of the bench found: the JSON file, and all that the page shows. */
export interface Result {
  /** Of this shape of file. */
  readonly format: typeof FORMAT
  /** ISO 8601. */
  readonly at: string
  readonly machine: Machine
  readonly loadAfter: number
  readonly device: string
  /** What was measured as Postern. */
  readonly program: string
  readonly tools: readonly string[]
  readonly pinned: boolean
  readonly rounds: number
  readonly seconds: number
  readonly quick: boolean
  /** Of the whole run (seconds). */
  readonly took: number
  readonly figures: readonly MeasuredFigure[]
}

export interface MeasuredFigure extends Pick<Figure, 'id' | 'title' | 'about'>, Findings {
  /** Seconds. */
  readonly took: number
}

export const FORMAT = 'postern-bench-1'

/** Reads what an earlier run wrote. Fails where the file is something else. */
export async function readResult(file: string): Promise<Result> {
  const value: unknown = JSON.parse(await readFile(file, 'utf8'))
  if (typeof value !== 'object' || value === null || !('format' in value) || value.format !== FORMAT) {
    throw new Error(`${file} is not a result of this bench`)
  }
  return value as Result // the format says so, and only we write it
}
