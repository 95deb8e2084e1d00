import { BOUNDS } from '../record/metric-registry.ts'
import type { Totals } from '../record/metrics.ts'
import { REFUSAL_REASONS } from '../record/tally.ts'
import type { Clock } from '../system/clock.ts'
import { everySecond } from '../system/every-second.ts'
import type { Condition, Latency, Point } from './model.ts'

export type History = ReturnType<typeof createHistory>

interface Dependencies {
  readonly clock: Clock
  readonly totals: () => Totals
  readonly load: () => { readonly inFlight: number; readonly queued: number }
}

const SECOND = 1_000

/** The number of points that are kept: 15 minutes. */
export const KEPT = 900

/** A second that took this long or longer (ms) has no point: the process was stopped, so the sums are not those of one second. */
const LONGEST = 2 * SECOND

/** A smaller difference between the steps of wall clock and monotonic clock (ms) does not count: the wall clock was not set. */
const TOLERANCE = 250

/**
 * Records the last 15 minutes, second by second, from the sums of the metrics. It always records, so a page that is opened after an
 * incident shows the incident.
 *
 * Seconds in which the process was stopped or the machine slept are missing. If the wall clock is set back, the earlier points move with
 * it, so times always ascend. If it is set forward, there is the same gap as after a sleep.
 */
export function createHistory({ clock, totals, load }: Dependencies) {
  let points: Point[] = []
  const listeners = new Set<(point: Point) => void>()
  let sums = totals()
  let monotonic = clock.monotonic()
  let wall = clock.wall()

  function tick(): void {
    const elapsed = clock.monotonic() - monotonic
    const now = clock.wall()
    // Rounded, because the times of points are ids of events.
    const set = Math.round(now - wall - elapsed)
    monotonic += elapsed
    wall = now
    // Otherwise the earlier points would be later than the next one.
    if (set < -TOLERANCE) points = points.map((point) => ({ ...point, time: point.time + set }))
    const before = sums
    sums = totals()
    if (elapsed >= LONGEST) return
    const { inFlight, queued } = load()
    const requests = increases(sums.requests, before.requests)
    const refused = increases(sums.refusals, before.refusals)
    const point: Point = {
      time: Math.max(Math.round(now), (points.at(-1)?.time ?? 0) + 1),
      requests: sumOf(requests),
      refusals: Object.fromEntries(
        REFUSAL_REASONS.flatMap((reason, i) => (refused[i] ? [[reason, refused[i]]] : [])),
      ),
      serverErrors: sums.serverErrors - before.serverErrors,
      client: latencyOf(requests),
      device: latencyOf(increases(sums.device, before.device)),
      inFlight,
      queued,
      connections: sums.connections,
      tunnels: sums.tunnels,
    }
    points.push(point)
    if (points.length > KEPT) points.shift()
    for (const listener of listeners) listener(point)
  }

  const seconds = everySecond(clock, tick)
  return {
    /** The points later than `after`, oldest first. */
    points: (after: number): readonly Point[] => points.filter(({ time }) => time > after),
    onPoint(listener: (point: Point) => void): { close(): void } {
      listeners.add(listener)
      return { close: () => void listeners.delete(listener) }
    },
    close(): void {
      seconds.close()
      listeners.clear()
    },
  }
}

function latencyOf(counts: readonly number[]): Latency | null {
  const p50 = SECOND * quantileOf(0.5, counts, BOUNDS)
  return Number.isNaN(p50) ? null : { p50, p99: SECOND * quantileOf(0.99, counts, BOUNDS) }
}

function increases(sums: readonly number[], before: readonly number[]): readonly number[] {
  return sums.map((sum, i) => sum - (before[i] ?? 0))
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0)
}

/** The sums since the start, for `Condition`. */
export function sumsSinceStart({ requests, refusals, serverErrors }: Totals): Condition['totals'] {
  return { requests: sumOf(requests), refused: sumOf(refusals), serverErrors }
}

/**
 * The quantile of a histogram, as Prometheus's `histogram_quantile` computes it: interpolated within its bucket, and the highest bound if
 * it lies above all bounds. NaN without observations.
 *
 * @param quantile between 0 and 1
 * @param counts the observations of each bucket without those of lower buckets; one more entry than `bounds`
 * @param bounds the upper bounds of the buckets, ascending
 */
export function quantileOf(quantile: number, counts: readonly number[], bounds: readonly number[]): number {
  const total = sumOf(counts)
  if (total === 0) return Number.NaN
  const rank = quantile * total
  let below = 0
  for (const [i, to] of bounds.entries()) {
    const count = counts[i] ?? 0
    const from = bounds[i - 1] ?? 0
    if (count > 0 && below + count >= rank) return from + ((to - from) * (rank - below)) / count
    below += count
  }
  return bounds.at(-1) ?? 0
}
