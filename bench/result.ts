import { readFile } from 'node:fs/promises'
import type { Figure, Findings } from './figure.ts'
import type { Machine } from './machine.ts'

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

export interface MeasuredFigure extends Pick<Figure, 'id' | 'title' | 'about'>, Findings {
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
