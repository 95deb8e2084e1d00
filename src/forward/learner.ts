import { failureOf } from '../device/failure.ts'
import { isSafe } from '../http1/request-writer.ts'
import { type BoundedQueue, createBoundedQueue } from '../system/bounded-queue.ts'
import type { Clock, Timer } from '../system/clock.ts'
import type { CeilingCause, LimitReason } from './bound.ts'
import { type Ceiling, UNKNOWN } from './ceilings.ts'
import type { DevicePlace } from './device-places.ts'
import { Measure } from './measure.ts'
import type { Outage } from './outages.ts'

/** How often (ms) the bound is looked at while requests wait. */
const LOOK = 50

/** A request at the device, with the notes of the learner. Only the learner writes them. */
export interface Observed {
  readonly method: string
  readonly target: string
  /** Undefined until its last byte is sent. */
  place: DevicePlace | undefined
  /** The request has reached the device, and its method may change the device. */
  changes: boolean
}

/** Learns the number of places from what happens to the requests in them. */
export interface Learner {
  readonly ceiling: Ceiling
  /** Whether the device has shown that some number of requests is too many. */
  readonly isBounded: boolean
  /** The operator says that what broke the device may be tried again. */
  forget(): void
  /** The wall clock was set: the same ceiling has other times. */
  retime(ceiling: Ceiling): void
  /** When the device last went away. */
  readonly outage: Outage
  /** How many responses have come. */
  readonly answers: number
  /** Whether the device has answered this many requests at once for a while. */
  carries(limit: number): boolean
  /** No request gets a place before the next call of `share`: the other sidecars of the fleet still have all places. */
  wait(): void
  /** Takes the ceiling that the fleet has decided. `isNew`: it is another decision than before. */
  share(ceiling: Ceiling, isNew: boolean): void
  /** A request waits for a place. */
  onWait(): void
  /** The head of a request was sent. */
  begun(request: Observed): void
  /** The last byte of the request was sent. */
  sent(request: Observed): void
  /** The head of the response has come, at `now` (ms). */
  answered(request: Observed, now: number): void
  /** The request has ended. `error`: why it has no response. */
  left(request: Observed, error?: unknown): void
  /** A connection is opened. `present`: how many are then at the device, closing ones included. */
  opens(present: number): void
  /** The device refused a connection. */
  refused(): void
  /** The device dropped a new connection before a byte of a response. */
  reset(): void
}

interface LearnerOptions {
  readonly min: number
  readonly max: number
  readonly waiting: number
  readonly maxWait: number
  /** From before a restart. */
  readonly ceiling?: Ceiling
  /** Other sidecars have requests at the device, too. */
  readonly inFleet?: boolean
  /** The queue before this one, at the same device: a reload changes the bound, and what is inside there still counts. */
  readonly before?: BoundedQueue | undefined
  /** The most places that a fleet leaves this sidecar now. */
  readonly most?: () => number
  readonly clock: Clock
  readonly onChange: (reason: LimitReason, limit: number) => void
  /** The ceiling is another one. */
  readonly onCeiling: (ceiling: Ceiling, cause: CeilingCause) => void
}

/** A queue whose bound is learned between `min` and `max`. There is no learner if those are equal. */
export function createPlaces({
  min,
  max,
  waiting,
  maxWait,
  clock,
  inFleet = false,
  most = () => Number.POSITIVE_INFINITY,
  before,
  ...options
}: LearnerOptions): {
  readonly queue: BoundedQueue
  readonly learner: Learner | undefined
} {
  if (min === max) {
    return { queue: createBoundedQueue(clock, { inside: max, waiting, maxWait }, before), learner: undefined }
  }
  const measure: Measure = new Measure(
    { min, max, inFleet },
    {
      onChange: (reason) => options.onChange(reason, measure.limit),
      onCeiling: (cause) => options.onCeiling(measure.ceiling, cause),
    },
    options.ceiling ?? UNKNOWN,
  )
  const bounds = {
    get inside() {
      return inFleet ? Math.min(measure.limit, most()) : measure.limit
    },
    waiting,
    maxWait,
  }
  const queue = createBoundedQueue(clock, bounds, before)
  let timer: Timer | undefined
  let waitsSince = 0

  function look(): void {
    measure.look(queue.inside, waitsSince, clock.monotonic())
    queue.fill()
    if (queue.waiting > 0) return
    timer?.cancel()
    timer = undefined
  }

  const learner: Learner = {
    get ceiling() {
      return measure.ceiling
    },
    get isBounded() {
      return measure.ceiling !== UNKNOWN
    },
    forget: () => measure.forget(),
    retime: (ceiling) => measure.retime(ceiling),
    get outage() {
      return measure.outage
    },
    get answers() {
      return measure.answers
    },
    carries: (limit) => measure.carries(limit),
    wait: () => measure.wait(),
    share(ceiling, isNew) {
      measure.share(ceiling, isNew, clock.monotonic())
      queue.fill()
    },
    onWait() {
      if (timer !== undefined) return
      waitsSince = clock.monotonic()
      timer = clock.every(LOOK, look)
    },
    begun(request) {
      if (request.changes || isSafe(request.method)) return
      request.changes = true
      measure.changing(1, clock.monotonic())
    },
    sent(request) {
      const { place, target } = request
      // The request was sent before, on a connection that broke.
      if (place !== undefined) measure.left(place)
      const end = target.indexOf('?')
      const path = end < 0 ? target : target.slice(0, end)
      request.place = measure.sent(path, queue.inside, clock.monotonic())
    },
    answered({ place }, now) {
      if (place !== undefined) measure.answered(place, now)
    },
    left({ place, changes }, error) {
      if (changes) measure.changing(-1, clock.monotonic())
      if (place === undefined) return
      if (error !== undefined && failureOf(error) === 'http_response_timeout')
        measure.failed(place, clock.monotonic())
      measure.left(place)
    },
    opens: (present) => measure.opens(present, clock.monotonic()),
    refused: () => measure.refused(queue.inside, clock.monotonic()),
    reset: () => measure.reset(queue.inside, clock.monotonic()),
  }
  return { queue, learner }
}
