import type { Check, Table } from '../figure.ts'
import { fixed, percent } from '../format.ts'
import type { LoadResult } from '../load/generator.ts'
import {
  checkOf,
  type LatencySummary,
  medianOf,
  PERCENTILES,
  ratioOf,
  type Series,
  summarize,
} from '../measure.ts'

/** Result of one run of a load generator against one peer. */
export interface Sample extends Omit<LoadResult, 'requests' | 'statuses'> {
  /** Processor time of the proxy per request (µs): other processes hardly affect it. */
  readonly cpuPerRequest: number
  /** Fraction of its core that the proxy used. Well below 1, the proxy was not the bottleneck. */
  readonly busy: number
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

/** The median of a measure of a row; NaN if there is no such row. */
function median(row: Row | undefined, measure: Measure): number {
  return medianOf(row?.samples.map((sample) => sample[measure]) ?? [])
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
  const measure = by === 'CPU' ? 'cpuPerRequest' : 'requestsPerSecond'
  const pair = [seriesOf(ours, OURS, measure), seriesOf(theirs, peer, measure)] as const
  const [above, below] = by === 'CPU' ? pair.toReversed() : pair
  return ratioOf(id, what, above ?? [], below ?? [], { ...threshold, better: 'more' })
}

/** Processor time per request, or another measure, of a row as a multiple of that of another row, round by round. */
export function besideCheck(
  rows: readonly Row[],
  [name, other]: readonly [name: string, other: string],
  { id, what, reach }: Pick<Check, 'id' | 'what' | 'reach'>,
  measure: Measure = 'cpuPerRequest',
): Check {
  return ratioOf(id, what, seriesOf(rows, name, measure), seriesOf(rows, other, measure), { reach })
}

/** Processor time per request of a row: other processes hardly affect it, but it differs between machines. */
export function costCheck(rows: readonly Row[], id: string, what: string, name = OURS): Check {
  return checkOf(id, what, 'µs', summarize(seriesOf(rows, name, 'cpuPerRequest')))
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
      const [rate, cost] = [median(row, 'requestsPerSecond'), median(row, 'cpuPerRequest')]
      return [
        `${row.name} ${row.version}`,
        row.does,
        row.generator,
        fixed(rate, 0),
        percent(spreadOf(row.samples.map((sample) => sample.requestsPerSecond))),
        ratioText(median(ours, 'requestsPerSecond') / rate),
        fixed(cost, 1),
        ratioText(cost / median(ours, 'cpuPerRequest')),
        percent(median(row, 'busy')),
        ...PERCENTILES.map((name) => fixed(median(row, name), 2)),
        String(failures(row.samples)),
      ]
    }),
  }
}

/** Half the distance from the lowest round to the highest, as a fraction of the median. */
export function spreadOf(rounds: Series): number {
  const { median, range } = summarize(rounds) ?? { median: Number.NaN, range: [0, 0] }
  return (range[1] - range[0]) / 2 / median
}

function ratioText(ratio: number): string {
  return Number.isFinite(ratio) ? `× ${fixed(ratio, 2)}` : '-'
}

type Rounds = readonly { readonly failed: number }[]

export function failures(rounds: Rounds): number {
  return rounds.reduce((sum, { failed }) => sum + failed, 0)
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
const BUSY_ENOUGH = 0.9

/** Names the programs that were not the bottleneck: compare their processor time, not their rate. */
export function busyNotes(rows: readonly Row[]): string[] {
  return rows.flatMap((row) => busyNote(labelOf(row, rows), median(row, 'busy')))
}

export function busyNote(name: string, busy: number): string[] {
  return busy < BUSY_ENOUGH ? [`${name} used ${percent(busy)} of its core: it was not the bottleneck`] : []
}

export function rowFaults(rows: readonly Row[]): string[] {
  return rows.flatMap((row) => failedFault(labelOf(row, rows), row.samples))
}

/** A fault if any response of these rounds was wrong. */
export function failedFault(name: string, rounds: Rounds): string[] {
  const failed = failures(rounds)
  return failed === 0 ? [] : [`${name}: ${failed} responses were wrong or missing`]
}
