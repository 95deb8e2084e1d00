import { failureOf } from '../device/failure.ts'
import { pathOf } from '../http/request-path.ts'
import { type Bound, type BoundedQueue, createBoundedQueue, type OnWaited } from '../system/bounded-queue.ts'
import type { Clock, Timer } from '../system/clock.ts'
import { type Ceiling, type CeilingCause, UNKNOWN } from './ceiling.ts'
import type { DevicePlace } from './device-places.ts'
import { type Calm, PlacesLaw, type PlacesReason } from './places-law.ts'

/** How often (ms) the law looks at the places while requests wait. */
const LOOK = 50

/**
 * Learns the number of places from what happens to the requests in them. While a place is free, and the device carries the others, it is not
 * asked (`calm`).
 */
export interface Learner {
  /** What is learned. */
  readonly law: PlacesLaw
  readonly calm: Calm
  /** More requests are at the device than tell nothing: it is told of each. `forward/upstream.ts` writes this. */
  watches: boolean
  /** Takes what the fleet has decided: the most places of this sidecar, and the ceiling. */
  share(places: number, ceiling: Ceiling): void
  /** A request waits for a place. */
  onWait(): void
  /** A request that may change the device comes to it (1) or has left it (-1). */
  changing(by: 1 | -1): void
  /** The last byte of a request was sent at `sentAt` (ms). Returns its place. `inside`: how many requests had places then. */
  sent(target: string, sentAt: number, inside?: number): DevicePlace
  /** The head of the response has come, at `now` (ms). */
  answered(place: DevicePlace, now: number): void
  /** The request in this place has ended. `error`: why it has no response. */
  left(place: DevicePlace, error?: unknown): void
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
  readonly onWaited?: OnWaited
  /** From before a restart. */
  readonly ceiling?: Ceiling
  /** Other sidecars have requests at the device, too. */
  readonly inFleet?: boolean
  /** The queue before this one, at the same device: a reload changes the places, and what is inside there still counts. */
  readonly before?: BoundedQueue | undefined
  /** The most places that a fleet leaves this sidecar now. */
  readonly most?: () => number
  readonly clock: Clock
  readonly onChange: (reason: PlacesReason, places: number) => void
  /** The ceiling is another one. */
  readonly onCeiling: (ceiling: Ceiling, cause: CeilingCause) => void
}

/** A queue whose places are learned between `min` and `max`. There is no learner if those are equal. */
export function createPlaces({
  min,
  max,
  waiting,
  maxWait,
  onWaited,
  clock,
  inFleet = false,
  most = () => Number.POSITIVE_INFINITY,
  before,
  ...options
}: LearnerOptions): {
  readonly queue: BoundedQueue
  readonly learner: Learner | undefined
} {
  const queueOf = (own: Bound): BoundedQueue => {
    const shared = {
      get places() {
        return Math.min(own.places, most())
      },
    }
    const inside = inFleet ? shared : own
    return createBoundedQueue(clock, { inside, waiting, maxWait, onWaited }, before)
  }
  if (min === max) return { queue: queueOf({ places: max }), learner: undefined }
  const law: PlacesLaw = new PlacesLaw(
    { min, max, inFleet },
    {
      onChange: (reason) => options.onChange(reason, law.places),
      onCeiling: (cause) => options.onCeiling(law.ceiling, cause),
    },
    options.ceiling ?? UNKNOWN,
  )
  const queue = queueOf(law)
  let timer: Timer | undefined
  let waitsSince = 0

  function look(): void {
    law.look(queue.inside, waitsSince, clock.monotonic())
    queue.fill()
    if (queue.waiting > 0) return
    timer?.cancel()
    timer = undefined
  }

  const learner: Learner = {
    law,
    calm: law.calm,
    watches: false,
    share: (places, ceiling) => law.share(places, ceiling, clock.monotonic()),
    onWait() {
      if (timer !== undefined) return
      waitsSince = clock.monotonic()
      timer = clock.every(LOOK, look)
    },
    changing: (by) => law.changing(by, clock.monotonic()),
    sent: (target, sentAt, inside = queue.inside) => law.sent(pathOf(target), inside, sentAt),
    answered: (place, now) => law.answered(place, now),
    left(place, error) {
      if (error !== undefined && failureOf(error) === 'http_response_timeout')
        law.failed(place, clock.monotonic())
      law.left(place)
    },
    opens: (present) => law.opens(present, clock.monotonic()),
    refused: () => law.refused(queue.inside, clock.monotonic()),
    reset: () => law.reset(queue.inside, clock.monotonic()),
  }
  return { queue, learner }
}
