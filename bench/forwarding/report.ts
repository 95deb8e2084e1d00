import { type Sample, type Summary, summarizeBy } from '../measure.ts'
import { formatTable } from '../table.ts'
import type { Contestant } from './contest.ts'

/** The figures of one contestant over all rounds. */
export interface Row {
  readonly peer: string
  readonly version: string
  readonly does: string
  readonly generator: string
  readonly requestsPerSecond: Summary | undefined
  readonly p50: Summary | undefined
  readonly p99: Summary | undefined
  readonly cpuPerRequest: Summary | undefined
  readonly busy: Summary | undefined
  readonly failed: number
  readonly samples: readonly Sample[]
}

export function rowOf({ peer, version, generator }: Contestant, samples: readonly Sample[]): Row {
  return {
    peer: peer.name,
    version,
    does: peer.does,
    generator: generator.name,
    requestsPerSecond: summarizeBy(samples, 'requestsPerSecond'),
    p50: summarizeBy(samples, 'p50'),
    p99: summarizeBy(samples, 'p99'),
    cpuPerRequest: summarizeBy(samples, 'cpuPerRequest'),
    busy: summarizeBy(samples, 'busy'),
    failed: samples.reduce((sum, { failed }) => sum + failed, 0),
    samples,
  }
}

const HEAD = [
  'peer',
  'does besides',
  'req/s',
  '±',
  'we are',
  'CPU µs/req',
  'by CPU',
  'busy',
  'p50 ms',
  'p99 ms',
  'failed',
]

/** The rows of one generator, and how Postern stands to each: by requests per second, and by processor time. */
export function formatRows(rows: readonly Row[]): string {
  const ours = rows.find(({ peer }) => peer === 'postern')
  return formatTable(
    HEAD,
    rows.map((row) => [
      `${row.peer} ${row.version}`,
      row.does,
      fixed(row.requestsPerSecond?.median, 0),
      percent(row.requestsPerSecond && row.requestsPerSecond.spread / 2),
      times(ours?.requestsPerSecond, row.requestsPerSecond),
      fixed(row.cpuPerRequest?.median, 1),
      times(row.cpuPerRequest, ours?.cpuPerRequest),
      percent(row.busy?.median),
      fixed(row.p50?.median, 2),
      fixed(row.p99?.median, 2),
      String(row.failed),
    ]),
  )
}

function times(above: Summary | undefined, below: Summary | undefined): string {
  return above === undefined || below === undefined ? '-' : `× ${fixed(above.median / below.median, 2)}`
}

function percent(part: number | undefined): string {
  return part === undefined ? '-' : `${fixed(part * 100, 0)} %`
}

function fixed(value: number | undefined, digits: number): string {
  return value === undefined || Number.isNaN(value) ? '-' : value.toFixed(digits)
}
