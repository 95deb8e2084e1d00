import type { BarRow } from '../figure.ts'
import type { LatencySummary } from '../load/latencies.ts'
import { summarize } from '../measure.ts'

export const PERCENTILES = ['p50', 'p90', 'p99'] as const

/** The medians, over all rounds, of the percentiles. */
export function latencyRow(label: string, ours: boolean, reports: readonly LatencySummary[]): BarRow {
  return {
    label,
    ours,
    values: PERCENTILES.map((name) => summarize(reports.map((report) => report[name]))?.median),
  }
}
