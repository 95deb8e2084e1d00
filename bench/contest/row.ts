import type { BarChart, Check, Table } from '../figure.ts'
import { fixed, percent } from '../format.ts'
import { ratioOf, type Sample, type Summary, summarize } from '../measure.ts'
import type { Contestant } from './contest.ts'

/** The figures of one contestant over all rounds. */
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

/** Our own row under the same generator as `row`. */
function oursBeside(rows: readonly Row[], generator: string): Row | undefined {
  return rows.find((row) => row.name === OURS && row.generator === generator)
}

interface RatioCheck extends Pick<Check, 'id' | 'what' | 'reach' | 'aim'> {
  readonly peer: string
}

/** Our requests per second as a multiple of a peer's, round by round. */
export function ratioCheck(rows: readonly Row[], { peer, ...check }: RatioCheck): Check {
  const theirs = rows.find(({ name }) => name === peer)
  const ours = theirs && oursBeside(rows, theirs.generator)
  const rates = (row: Row | undefined): number[] =>
    row?.samples.map(({ requestsPerSecond }) => requestsPerSecond) ?? []
  return ratioOf(rates(ours), rates(theirs), { ...check, better: 'more' })
}

/** Our own processor time per request: moved little by what else the machine does, but another on each machine. */
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

/** All rows, and how Postern stands to each: by requests per second, and by processor time. */
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
        times(ours && over(ours, 'requestsPerSecond'), rate),
        fixed(cost?.median, 1),
        times(cost, ours && over(ours, 'cpuPerRequest')),
        percent(over(row, 'busy')?.median),
        fixed(over(row, 'p50')?.median, 2),
        fixed(over(row, 'p90')?.median, 2),
        fixed(over(row, 'p99')?.median, 2),
        String(failures(row)),
      ]
    }),
  }
}

function times(above: Summary | undefined, below: Summary | undefined): string {
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

/** Percentiles of those whose generator tells them. */
export function latencyChart(title: string, rows: readonly Row[]): BarChart {
  const measures = ['p50', 'p90', 'p99'] as const
  return {
    kind: 'bars',
    title,
    unit: 'ms',
    series: measures,
    rows: rows.map((row) => ({
      label: labelOf(row, rows),
      ours: row.name === OURS,
      values: measures.map((measure) => over(row, measure)?.median),
    })),
  }
}

function labelOf(row: Row, rows: readonly Row[]): string {
  const several = rows.some(({ generator }) => generator !== row.generator)
  return several ? `${row.name} (${row.generator})` : row.name
}

/** Below this part of its core, a proxy was not what limited the rate. */
export const BUSY_ENOUGH = 0.9

/** Who was not the bottleneck: there the ratio says less than the processor time does. */
export function busyNotes(rows: readonly Row[]): string[] {
  return rows.flatMap((row) => busyNote(labelOf(row, rows), over(row, 'busy')?.median))
}

export function busyNote(name: string, busy: number | undefined): string[] {
  if (busy === undefined || busy >= BUSY_ENOUGH) return []
  return [`${name} used ${percent(busy)} of its core: it was not the bottleneck`]
}

export function rowFaults(rows: readonly Row[]): string[] {
  return rows.flatMap((row) =>
    failures(row) === 0 ? [] : [`${labelOf(row, rows)}: ${failures(row)} answers were wrong or missing`],
  )
}
