import type { WaitsCondition } from '../admin/control-socket.ts'
import { quantileOf } from '../overview/history.ts'
import type { Entry } from '../system/bounded-queue.ts'
import type { Clock } from '../system/clock.ts'

const HOUR = 3_600_000
/** So many hours are kept, the present one included. */
const KEPT = 24
/** The upper bounds of the buckets (ms). One more bucket has none. */
const BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000] as const

// When waits matter, and what would do: the rule in docs/measure.md.
/** Fewer requests than these tell nothing. */
const LEAST_REQUESTS = 100
/** One request in a hundred waits as long as this (ms), or longer. */
const LONG = 20
/** This share of the requests is refused. */
const MANY_REFUSED = 0.01
/** No more places than these are advised: `auto` learns up to them. */
const MOST_ADVISED = 64

interface Hour {
  /** How many hours after the start it begins. */
  readonly at: number
  requests: number
  refused: number
  readonly waits: number[]
}

/** What bounds the places. */
interface PlacesBound {
  /** All of them are there, in a fleet all that are left to this sidecar. */
  readonly areAll: boolean
  /** The most that the configuration allows. */
  readonly max: number
  /** The device has shown that some number is too many. */
  readonly isCeiling: boolean
}

/**
 * The waits for places over the last day, hour by hour. A request that finds a free place costs nothing here: the queue counts it, and the
 * count is read when an hour ends.
 */
export class Waits {
  readonly #clock: Pick<Clock, 'monotonic' | 'wall'>
  /** How many requests have got a place so far. */
  readonly #entered: () => number
  readonly #start: number
  #seen: number
  /** The oldest first. */
  #hours: readonly Hour[] = []

  constructor(clock: Pick<Clock, 'monotonic' | 'wall'>, entered: () => number) {
    this.#clock = clock
    this.#entered = entered
    this.#start = clock.monotonic()
    this.#seen = entered()
  }

  /** A request that found no free place has ended its wait after `time` (ms). */
  over(time: number, end: Entry['kind']): void {
    const hour = this.#present()
    const above = BOUNDS.findIndex((bound) => time <= bound)
    const bucket = above === -1 ? BOUNDS.length : above
    hour.waits[bucket] = (hour.waits[bucket] ?? 0) + 1
    if (end !== 'entered') hour.requests += 1
    if (end === 'full' || end === 'late') hour.refused += 1
  }

  /** Call this at least once in an hour: the requests since the last call count to the hour of that call. */
  look(): void {
    this.#present()
  }

  condition({ areAll, max, isCeiling }: PlacesBound): WaitsCondition {
    const present = this.#present()
    this.#count(present)
    const begin = this.#start + Math.max(0, present.at + 1 - KEPT) * HOUR
    const sum = (of: (hour: Hour) => number): number =>
      this.#hours.reduce((total, each) => total + of(each), 0)
    const waits = Array.from({ length: BOUNDS.length + 1 }, (_, i) => sum((hour) => hour.waits[i] ?? 0))
    const [requests, refused] = [sum((hour) => hour.requests), sum((hour) => hour.refused)]
    const waited = waits.reduce((total, each) => total + each, 0)
    const p99 = quantileOfAll(0.99, requests, waits, waited)
    const matters = requests >= LEAST_REQUESTS && (p99 >= LONG || refused >= MANY_REFUSED * requests)
    const helps = matters && areAll && !isCeiling && max < MOST_ADVISED
    return {
      since: Math.round(begin + this.#clock.wall() - this.#clock.monotonic()),
      requests,
      waited,
      refused,
      p99,
      matters,
      wouldDo: helps ? Math.min(2 * max, MOST_ADVISED) : null,
    }
  }

  /** The present hour. Closes the hour before, and forgets those that are older than a day. */
  #present(): Hour {
    const at = Math.floor((this.#clock.monotonic() - this.#start) / HOUR)
    const last = this.#hours.at(-1)
    if (last?.at === at) return last
    if (last !== undefined) this.#count(last)
    const hour = { at, requests: 0, refused: 0, waits: [] }
    this.#hours = [...this.#hours.filter((each) => each.at > at - KEPT), hour]
    return hour
  }

  /** Counts the requests that have got a place since the last count to this hour. */
  #count(hour: Hour): void {
    const entered = this.#entered()
    hour.requests += entered - this.#seen
    this.#seen = entered
  }
}

/** The quantile over all requests (ms): those that found a free place have waited for 0 ms. */
function quantileOfAll(quantile: number, requests: number, waits: readonly number[], waited: number): number {
  const ofWaits = 1 - ((1 - quantile) * requests) / waited
  return ofWaits > 0 ? quantileOf(ofWaits, waits, BOUNDS) : 0
}
