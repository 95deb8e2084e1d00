import { BOUNDS } from '../record/histogram.ts'
import type { Totals } from '../record/metrics.ts'
import { REFUSAL_REASONS } from '../record/refusal-counts.ts'
import type { Clock } from '../system/clock.ts'
import type { Latency, Point } from './model.ts'
import { quantileOf } from './quantile.ts'

/** The last quarter of an hour, second by second. */
export interface History {
  /** The points later than `after`, oldest first. */
  points(after: number): readonly Point[]
  /** Calls the listener with each new point. */
  onPoint(listener: (point: Point) => void): { close(): void }
  close(): void
}

export interface HistoryDependencies {
  readonly clock: Clock
  readonly totals: Totals
  readonly load: () => { readonly inFlight: number; readonly queued: number }
}

const SECOND = 1_000

/** How many points are kept. */
export const KEPT = 900

/** A second that took longer (ms) is missing: the process was stopped, and the sums are not those of a second. */
const LONGEST = 2 * SECOND

/** A wall clock that differs by less (ms) from what the monotonic clock says was not set. */
const TOLERANCE = 250

/** The columns of a point. The refusals follow, one column for each reason. */
const TIME = 0
const REQUESTS = 1
const IN_FLIGHT = 2
const QUEUED = 3
const CONNECTIONS = 4
const TUNNELS = 5
const CLIENT = 6
const DEVICE = 8
const REFUSALS = 10
const WIDTH = REFUSALS + REFUSAL_REASONS.length

/**
 * Records a point each second from the sums of the metrics. It is always on, so a page that is opened after an incident shows it. All
 * points are in one array of numbers, so a second costs about 10 µs and allocates nothing that lasts.
 *
 * Seconds in which the process was stopped or the machine slept are missing. If the wall clock is set back, the points before move
 * with it, so times always ascend; if it is set forward, that leaves the same gap as a sleep.
 */
export function createHistory({ clock, totals, load }: HistoryDependencies): History {
  const cells = new Float64Array(KEPT * WIDTH)
  const listeners = new Set<(point: Point) => void>()
  const { requests, device, refusals } = totals
  const requestSecond = sumsOf(BOUNDS.length + 1, (i) => (requests.api[i] ?? 0) + (requests.oauth[i] ?? 0))
  const deviceSecond = sumsOf(BOUNDS.length + 1, (i) => device[i] ?? 0)
  const refusalSecond = sumsOf(REFUSAL_REASONS.length, (i) => refusals[REFUSAL_REASONS[i] ?? 'malformed'])
  /** The number of points since the start; `recorded % KEPT` is the row of the next. */
  let recorded = 0
  let monotonic = clock.monotonic()
  let wall = clock.wall()
  /** The wall clock was set: moves the points that would otherwise be later than the next one. */
  function moveTimes(by: number): void {
    const rows = Math.min(recorded, KEPT)
    for (let row = 0; row < rows; row += 1) cells[row * WIDTH + TIME] = at(row * WIDTH + TIME) + by
  }

  const at = (cell: number): number => cells[cell] ?? 0

  function tick(): void {
    const elapsed = clock.monotonic() - monotonic
    const now = clock.wall()
    // Whole: the times of points are ids of events.
    const set = Math.round(now - wall - elapsed)
    monotonic += elapsed
    wall = now
    if (set < -TOLERANCE) moveTimes(set)
    const ended = requestSecond.take()
    deviceSecond.take()
    refusalSecond.take()
    if (elapsed >= LONGEST) return
    const start = (recorded % KEPT) * WIDTH
    const { inFlight, queued } = load()
    const last = recorded === 0 ? 0 : at(((recorded - 1) % KEPT) * WIDTH + TIME)
    cells[start + TIME] = Math.max(Math.round(now), last + 1)
    cells[start + REQUESTS] = ended
    cells[start + IN_FLIGHT] = inFlight
    cells[start + QUEUED] = queued
    cells[start + CONNECTIONS] = totals.connections
    cells[start + TUNNELS] = totals.tunnels
    setLatency(start + CLIENT, requestSecond.counts)
    setLatency(start + DEVICE, deviceSecond.counts)
    cells.set(refusalSecond.counts, start + REFUSALS)
    recorded += 1
    if (listeners.size === 0) return
    const point = pointAt(start)
    for (const listener of listeners) listener(point)
  }

  function setLatency(cell: number, counts: Float64Array): void {
    cells[cell] = SECOND * quantileOf(0.5, counts, BOUNDS)
    cells[cell + 1] = SECOND * quantileOf(0.99, counts, BOUNDS)
  }

  function latencyAt(cell: number): Latency | null {
    const p50 = at(cell)
    return Number.isNaN(p50) ? null : { p50, p99: at(cell + 1) }
  }

  function pointAt(start: number): Point {
    const refusals: Record<string, number> = {}
    REFUSAL_REASONS.forEach((reason, i) => {
      const count = at(start + REFUSALS + i)
      if (count > 0) refusals[reason] = count
    })
    return {
      time: at(start + TIME),
      requests: at(start + REQUESTS),
      refusals,
      client: latencyAt(start + CLIENT),
      device: latencyAt(start + DEVICE),
      inFlight: at(start + IN_FLIGHT),
      queued: at(start + QUEUED),
      connections: at(start + CONNECTIONS),
      tunnels: at(start + TUNNELS),
    }
  }

  const timer = setInterval(tick, SECOND).unref()
  return {
    points(after) {
      const found: Point[] = []
      for (let point = Math.max(0, recorded - KEPT); point < recorded; point += 1) {
        const start = (point % KEPT) * WIDTH
        if (at(start + TIME) > after) found.push(pointAt(start))
      }
      return found
    },
    onPoint(listener) {
      listeners.add(listener)
      return { close: () => listeners.delete(listener) }
    },
    close() {
      clearInterval(timer)
      listeners.clear()
    },
  }
}

/** Sums that only grow, and by how much. */
interface Sums {
  /** The increase of each sum between the last two calls of `take`. */
  readonly counts: Float64Array
  /** Reads the sums, and returns the increase of all together. */
  take(): number
}

function sumsOf(length: number, sumOf: (i: number) => number): Sums {
  const before = Float64Array.from({ length }, (_, i) => sumOf(i))
  const counts = new Float64Array(length)
  return {
    counts,
    take() {
      let added = 0
      for (let i = 0; i < length; i += 1) {
        const sum = sumOf(i)
        const more = sum - (before[i] ?? 0)
        before[i] = sum
        counts[i] = more
        added += more
      }
      return added
    },
  }
}
