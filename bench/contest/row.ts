import type { BarChart, BarRow, Check, Table } from '../figure.ts'
import { fixed, percent } from '../format.ts'
import { type LatencySummary, ratioOf, type Sample, type Summary, summarize } from '../measure.ts'
import type { Contestant } from './contest.ts'

/** The samples of one contestant, one per round. */
export interface Row {
  readonly name: string
  readonly version: string
  readonly does: string
  readonly generator: string
  readonly samples: readonly Sample[]
}

export function rowOf({ peer, version, generator }: Contestant, samples: readonly Sample[]): Row {
  return { name: peer.name, version, does: peer.does, generator: generator.name, samples }
}

type Measure = Exclude<keyof Sample, 'failed'>

function over({ samples }: Row, measure: Measure): Summary | undefined {
  return summarize(samples.map((sample) => sample[measure]))
}

const OURS = 'postern'

/** The row of Postern under this generator. */
function oursBeside(rows: readonly Row[], generator: string): Row | undefined {
  return rows.find((row) => row.name === OURS && row.generator === generator)
}

interface RatioCheck extends Pick<Check, 'id' | 'what' | 'reach' | 'aim'> {
  readonly peer: string
}

/** Requests per second of Postern as a multiple of those of a peer, round by round. */
export function ratioCheck(rows: readonly Row[], { peer, ...check }: RatioCheck): Check {
  const theirs = rows.find(({ name }) => name === peer)
  const ours = theirs && oursBeside(rows, theirs.generator)
  const rates = (row: Row | undefined): number[] =>
    row?.samples.map(({ requestsPerSecond }) => requestsPerSecond) ?? []
  return ratioOf(rates(ours), rates(theirs), { ...check, better: 'more' })
}

/** Processor time of Postern per request: other processes hardly affect it, but it differs between machines. */
export function costCheck(rows: readonly Row[], id: string, what: string): Check {
  const own = rows.find(({ name }) => name === OURS)
  const cost = own && over(own, 'cpuPerRequest')
  return {
    id,
    what,
    unit: 'µs',
    better: 'less',
    value: cost?.median,
    range: cost?.range,
    comparable: 'same machine',
  }
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
      const spread = rate && (rate.range[1] - rate.range[0]) / 2 / rate.median
      return [
        `${row.name} ${row.version}`,
        row.does,
        row.generator,
        fixed(rate?.median, 0),
        percent(spread),
        ratioText(ours && over(ours, 'requestsPerSecond'), rate),
        fixed(cost?.median, 1),
        ratioText(cost, ours && over(ours, 'cpuPerRequest')),
        percent(over(row, 'busy')?.median),
        fixed(over(row, 'p50')?.median, 2),
        fixed(over(row, 'p90')?.median, 2),
        fixed(over(row, 'p99')?.median, 2),
        String(failures(row)),
      ]
    }),
  }
}

function ratioText(above: Summary | undefined, below: Summary | undefined): string {
  return above === undefined || below === undefined ? '-' : `× ${fixed(above.median / below.median, 2)}`
}

function failures({ samples }: Row): number {
  return samples.reduce((sum, { failed }) => sum + failed, 0)
}

export function rateChart(title: string, rows: readonly Row[]): BarChart {
  return {
    kind: 'bars',
    title,
    unit: 'requests/s',
    series: ['requests/s'],
    rows: rows.map((row) => {
      const rate = over(row, 'requestsPerSecond')
      return {
        label: labelOf(row, rows),
        ours: row.name === OURS,
        values: [rate?.median],
        range: rate?.range,
      }
    }),
  }
}

/** Percentiles, where the generator reports them. */
export function latencyChart(title: string, rows: readonly Row[]): BarChart {
  return {
    kind: 'bars',
    title,
    unit: 'ms',
    series: PERCENTILES,
    rows: rows.map((row) => ({
      label: labelOf(row, rows),
      ours: row.name === OURS,
      values: PERCENTILES.map((measure) => over(row, measure)?.median),
    })),
  }
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
  return rows.flatMap((row) =>
    failures(row) === 0 ? [] : [`${labelOf(row, rows)}: ${failures(row)} responses were wrong or missing`],
  )
}

export const PERCENTILES = ['p50', 'p90', 'p99'] as const

/** Each percentile as the median of the rounds. */
export function latencyRow(label: string, ours: boolean, reports: readonly LatencySummary[]): BarRow {
  return {
    label,
    ours,
    values: PERCENTILES.map((name) => summarize(reports.map((report) => report[name]))?.median),
  }
}
