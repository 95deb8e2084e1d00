import type { Check, Table } from '../figure.ts'
import { fixed, percent } from '../format.ts'
import {
  checkOf,
  type LatencySummary,
  medianOf,
  PERCENTILES,
  ratioOf,
  type Series,
  type Summary,
  summarize,
} from '../measure.ts'

/** Result of one run of a load generator against one peer. */
export interface Sample {
  readonly requestsPerSecond: number
  /** Milliseconds; undefined if the generator does not report them. */
  readonly p50: number | undefined
  readonly p90: number | undefined
  readonly p99: number | undefined
  /** Processor time of the proxy per request (µs): other processes hardly affect it. */
  readonly cpuPerRequest: number | undefined
  /** Fraction of its core that the proxy used. Well below 1, the proxy was not the bottleneck. */
  readonly busy: number | undefined
  /** Unexpected responses, and errors. */
  readonly failed: number
}

/** The samples of one contestant, one per round. */
export interface Row {
  readonly name: string
  readonly version: string
  readonly does: string
  readonly generator: string
  readonly samples: readonly Sample[]
}

type Measure = Exclude<keyof Sample, 'failed'>

/** A measure of a row, round by round; empty if there is no such row. */
export function seriesOf(rows: readonly Row[], name: string, measure: Measure): Series {
  return rows.find((row) => row.name === name)?.samples.map((sample) => sample[measure]) ?? []
}

function over({ samples }: Row, measure: Measure): Summary | undefined {
  return summarize(samples.map((sample) => sample[measure]))
}

export const OURS = 'postern'

/** The row of Postern under this generator. */
function oursBeside(rows: readonly Row[], generator: string): Row | undefined {
  return rows.find((row) => row.name === OURS && row.generator === generator)
}

/** Requests per second of Postern as a multiple of those of a peer, round by round, or the same by processor time. */
export function ratioCheck(
  rows: readonly Row[],
  peer: string,
  {
    id,
    what,
    by = 'rate',
    ...threshold
  }: Pick<Check, 'id' | 'what' | 'reach' | 'aim'> & { by?: 'rate' | 'CPU' },
): Check {
  const theirs = rows.filter(({ name }) => name === peer)
  const ours = theirs.flatMap(({ generator }) => oursBeside(rows, generator) ?? [])
  const more = { ...threshold, better: 'more' } as const
  if (by === 'CPU')
    return ratioOf(
      id,
      what,
      seriesOf(theirs, peer, 'cpuPerRequest'),
      seriesOf(ours, OURS, 'cpuPerRequest'),
      more,
    )
  return ratioOf(
    id,
    what,
    seriesOf(ours, OURS, 'requestsPerSecond'),
    seriesOf(theirs, peer, 'requestsPerSecond'),
    more,
  )
}

/** Processor time of Postern per request: other processes hardly affect it, but it differs between machines. */
export function costCheck(rows: readonly Row[], id: string, what: string): Check {
  return checkOf(id, what, 'µs', summarize(seriesOf(rows, OURS, 'cpuPerRequest')))
}

const HEAD = ['peer', 'does besides', 'load', 'req/s', '±', 'we are', 'CPU µs/req', 'by CPU', 'busy']
const TAIL = ['p50 ms', 'p90 ms', 'p99 ms', 'failed']

/** All rows, with the ratio of Postern to each: by requests per second, and by processor time. */
export function rowsTable(caption: string, rows: readonly Row[]): Table {
  return {
    caption,
    head: [...HEAD, ...TAIL],
    rows: rows.map((row) => {
      const ours = oursBeside(rows, row.generator)
      const rate = over(row, 'requestsPerSecond')
      const cost = over(row, 'cpuPerRequest')
      return [
        `${row.name} ${row.version}`,
        row.does,
        row.generator,
        fixed(rate?.median, 0),
        percent(spreadOf(rate)),
        ratioText(ours && over(ours, 'requestsPerSecond'), rate),
        fixed(cost?.median, 1),
        ratioText(cost, ours && over(ours, 'cpuPerRequest')),
        percent(over(row, 'busy')?.median),
        ...PERCENTILES.map((name) => fixed(over(row, name)?.median, 2)),
        String(failures(row)),
      ]
    }),
  }
}

/** Half the distance from the slowest round to the fastest, as a fraction of the median. */
export function spreadOf(summary: Summary | undefined): number | undefined {
  return summary && (summary.range[1] - summary.range[0]) / 2 / summary.median
}

function ratioText(above: Summary | undefined, below: Summary | undefined): string {
  return above === undefined || below === undefined ? '-' : `× ${fixed(above.median / below.median, 2)}`
}

function failures({ samples }: Row): number {
  return samples.reduce((sum, { failed }) => sum + failed, 0)
}

/** Percentiles of the latency (ms), each as the median of the rounds. */
export function latencyTable(
  caption: string,
  rows: Iterable<readonly [name: string, rounds: readonly LatencySummary[]]>,
): Table {
  const cells = [...rows].map(([name, rounds]) => [
    name,
    ...PERCENTILES.map((percentile) => fixed(medianOf(rounds.map((round) => round[percentile])), 3)),
  ])
  return { caption, head: ['latency, ms', ...PERCENTILES], rows: cells }
}

function labelOf(row: Row, rows: readonly Row[]): string {
  const several = rows.some(({ generator }) => generator !== row.generator)
  return several ? `${row.name} (${row.generator})` : row.name
}

/** A proxy that used a smaller fraction of its core did not limit the rate. */
export const BUSY_ENOUGH = 0.9

/** Names the programs that were not the bottleneck: compare their processor time, not their rate. */
export function busyNotes(rows: readonly Row[]): string[] {
  return rows.flatMap((row) => busyNote(labelOf(row, rows), over(row, 'busy')?.median))
}

export function busyNote(name: string, busy: number | undefined): string[] {
  if (busy === undefined || busy >= BUSY_ENOUGH) return []
  return [`${name} used ${percent(busy)} of its core: it was not the bottleneck`]
}

export function rowFaults(rows: readonly Row[]): string[] {
  return rows.flatMap((row) => failedFault(labelOf(row, rows), row.samples))
}

/** A fault if any response of these rounds was wrong. */
export function failedFault(name: string, rounds: readonly { readonly failed: number }[]): string[] {
  const failed = rounds.reduce((sum, round) => sum + round.failed, 0)
  return failed === 0 ? [] : [`${name}: ${failed} responses were wrong or missing`]
}
