import type { PlacesCondition } from '../admin/control-socket.ts'
import { placesBounds, type ServiceConfig } from '../config/upstream-fields.ts'
import type { Room } from '../device/turns.ts'
import type { UploadBuffering } from '../forward/buffered-body.ts'
import type { Ceilings } from '../forward/ceilings.ts'
import { createPlaces, type Learner } from '../forward/learner.ts'
import type { Targets } from '../forward/settings.ts'
import type { Sharing } from '../forward/sharing.ts'
import type { Logger } from '../record/log.ts'
import type { DeviceLoad, UpstreamMetrics } from '../record/upstream-metrics.ts'
import type { BoundedQueue, QueueBounds } from '../system/bounded-queue.ts'
import type { Clock } from '../system/clock.ts'
import { limitLog } from './device-log.ts'

/** What all services of the device share. */
export interface Shared {
  readonly targets: Targets
  readonly ceilings: Ceilings
  readonly sharing: Sharing
}

/** The load of several services together. */
export function loadOf(
  services: readonly {
    readonly queue: BoundedQueue
    readonly buffering: Pick<UploadBuffering, 'queue'> | undefined
  }[],
): Omit<DeviceLoad, 'tolerant'> {
  const sum = { inFlight: 0, queued: 0, limit: 0 }
  for (const { queue, buffering } of services) {
    sum.inFlight += queue.inside
    sum.queued += queue.waiting + (buffering?.queue.waiting ?? 0)
    sum.limit += queue.places
  }
  return sum
}

/** The places at one service of the device. */
interface OpenPlaces {
  readonly queue: BoundedQueue
  /** With the most places that there can be. */
  readonly bounds: QueueBounds
  /** Undefined if their number is fixed. */
  readonly learner: Learner | undefined
  readonly room: Room
  condition(): PlacesCondition
}

interface Parts {
  readonly ceilings: Ceilings
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Pick<UpstreamMetrics, 'limitChanged'>
}

/** @param route the path of a service of `upstream.routes`; undefined for the main service */
export function openPlaces(
  service: ServiceConfig,
  route: string | undefined,
  { ceilings, clock, log, metrics }: Parts,
): OpenPlaces {
  const { min, max } = placesBounds(service)
  const waiting = { waiting: service.queue.size, maxWait: service.queue.timeout }
  const onChanged = limitLog(log)
  const name = route ?? ''
  const { queue, learner } = createPlaces({
    ...{ min, max, ...waiting, clock },
    ceiling: ceilings.of(name),
    onChange(reason, limit, ceiling) {
      metrics.limitChanged(reason)
      onChanged(reason, limit)
      ceilings.keep(name, ceiling)
    },
  })
  return {
    queue,
    bounds: { inside: max, ...waiting },
    learner,
    room: {
      isFull: () => queue.places === 1 || learner?.ceiling !== undefined,
      isCrowded: () => queue.inside > queue.places,
      refused: () => learner?.refused(),
      reset: () => learner?.reset(),
    },
    condition() {
      const until = learner?.ceiling && learner.ceiling.until + clock.wall() - clock.monotonic()
      const learned = learner !== undefined
      const triedAgainAt = until === undefined ? null : Math.round(until)
      return { route: route ?? null, used: queue.inside, limit: queue.places, learned, triedAgainAt }
    },
  }
}
