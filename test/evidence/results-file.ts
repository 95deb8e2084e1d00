import * as z from 'zod/mini'
import type { Results } from './results.ts'

const COUNT = z.number().check(z.int(), z.minimum(0))
const TEXTS = z.array(z.string())
const COUNTS = { passed: COUNT, failed: COUNT, skipped: COUNT }

const RESULTS: z.ZodMiniType<Results> = z.object({
  commit: z.string(),
  changed: z.boolean(),
  date: z.iso.datetime(),
  node: z.string(),
  asked: TEXTS,
  ...COUNTS,
  skips: z.array(z.object({ reason: z.string(), tests: COUNT })),
  promises: z.record(z.string(), z.object({ ...COUNTS, reasons: TEXTS })),
})

/** The run that a file of `npm test -- --results FILE` has; undefined for any other text. */
export function parseResults(text: string): Results | undefined {
  try {
    return RESULTS.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}
