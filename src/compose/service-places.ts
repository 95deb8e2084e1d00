import type { PlacesCondition, WaitsCondition } from '../admin/control-socket.ts'
import { formatUpstreamUrl } from '../config/address.ts'
import { placesBounds, type ServiceConfig } from '../config/upstream-fields.ts'
import type { Connections } from '../device/connections.ts'
import type { Capacity } from '../device/turns.ts'
import {
  type Ceiling,
  type CeilingCause,
  isStrike,
  mostUnder,
  nextAttempt,
  roomUnder,
  UNKNOWN,
  withoutFleet,
} from '../forward/ceiling.ts'
import type { Ceilings } from '../forward/ceilings-file.ts'
import { createPlaces, type Learner } from '../forward/learner.ts'
import { LongPaths } from '../forward/long-paths.ts'
import type { PlacesReason } from '../forward/places-law.ts'
import type { Logger } from '../record/log.ts'
import { TROUBLES } from '../record/troubles.ts'
import type { StrikeKind, UpstreamMetrics } from '../record/upstream-metrics.ts'
import type { BoundedQueue } from '../system/bounded-queue.ts'
import type { Clock } from '../system/clock.ts'
import { FleetMember } from './fleet-places.ts'
import { Waits } from './waits.ts'

const STRIKES: Readonly<Record<StrikeKind, string>> = {
  guess: 'the device had no room for more requests at once: it gets no more until one more is tried again',
  broke: TROUBLES.PosternDeviceBroke.line,
}

const DOUBTED =
  'the device was away with no more requests than before one more broke it, so their number may not be why: postern retry lets one more be tried'

interface Dependencies {
  /** The path of a service of `upstream.routes`; undefined for the main service. */
  readonly route: string | undefined
  /** The sidecars of a fleet share tokens, and the places of each service. */
  readonly inFleet: boolean
  readonly ceilings: Ceilings
  readonly metrics: Pick<UpstreamMetrics, 'limitChanged' | 'struck'>
  readonly clock: Clock
  readonly log: Logger
  /** The places before a reload, or before an earlier one, at the same device. */
  readonly before: ServicePlaces | undefined
}

type Pool = Pick<Connections, 'present' | 'closeIdle'>

/**
 * The places at one service of the device, and at the routes to the same address with the same `max_in_flight` and `queue`: their queue, the
 * law that learns their number, and the share of the fleet's places.
 */
export class ServicePlaces {
  readonly queue: BoundedQueue
  /** Undefined if the number of places is fixed. */
  readonly learner: Learner | undefined
  readonly longPaths: LongPaths = new LongPaths()
  /** The connections to the device of each service that has these places. */
  readonly #pools = new Set<Pool>()
  /** Tells the connections to the device how many places there are, and takes their signs of overload. */
  readonly capacity: Capacity
  /** The waits for these places over the last day. */
  readonly waits: Waits
  readonly #most: number
  readonly #deps: Dependencies
  /** The address of the service, and the least and the most places. A ceiling that was learned with another value does not count. */
  readonly #device: string
  /** Shares the places with the other sidecars; undefined without a fleet. */
  readonly member: FleetMember | undefined
  /** Other places have replaced these. A ceiling that these still learn is ignored. */
  #left = false
  /** How many requests of the sidecar's own have places. */
  #own = 0
  /** The places in the last log line. */
  #logged = 2

  constructor(service: ServiceConfig, deps: Dependencies) {
    const { route = '', inFleet, ceilings, clock, log, before } = deps
    const { min, max } = placesBounds(service)
    this.#deps = deps
    this.#most = max
    this.#device = `${formatUpstreamUrl(service.url)} ${min}-${max}`
    const { queue, learner } = createPlaces({
      ...{ min, max, inFleet, clock, before: before?.queue },
      most: () => this.member?.most ?? Number.POSITIVE_INFINITY,
      waiting: service.queue.size,
      maxWait: service.queue.timeout,
      onWaited: (time, end) => this.waits.over(time, end),
      ceiling: this.#kept(),
      onChange: (reason, places) => this.#placesChanged(reason, places),
      onCeiling: (ceiling, cause) => this.#ceilingChanged(ceiling, cause),
    })
    this.queue = queue
    this.learner = learner
    this.waits = new Waits(clock, () => queue.entered)
    this.capacity = capacityOf(queue, learner, () => this.#pools)
    if (inFleet) {
      const sidecar = ceilings.sidecar()
      const name = `${route} ${this.#device}`
      this.member = new FleetMember({ name, max, sidecar, learner, queue, own: () => this.#own, clock, log })
    }
  }

  /** A service has these places for requests on its connections, until `drop`. */
  share(pool: Pool): void {
    this.#pools.add(pool)
  }

  drop(pool: Pool): void {
    this.#pools.delete(pool)
  }

  /** Whether the device takes one request at a time. In a fleet, one place may be the share of this sidecar. */
  get takesOne(): boolean {
    const ofFleet = Math.min(this.member?.sum ?? 1, mostUnder(this.learner?.law.ceiling ?? UNKNOWN))
    return Math.max(this.queue.places, ofFleet) <= 1
  }

  /** Sends a request of the sidecar's own, which is no client's, when it has got a place. Undefined: it got none in time. */
  readonly inPlace = async <T>(send: () => Promise<T>): Promise<T | undefined> => {
    const entry = await this.queue.enter('', () => this.learner?.onWait())
    if (entry.kind !== 'entered') return undefined
    this.#own += 1
    try {
      return await send()
    } finally {
      this.#own -= 1
      entry.leave()
    }
  }

  /** Call this when these are in effect. What still waits for the places before them gets these. */
  begin(): void {
    this.#deps.before?.queue.passOn(this.queue)
  }

  /** Call this when other places replace these. The requests that wait here get the places of `next`. */
  async leave(next: ServicePlaces | undefined): Promise<void> {
    this.#left = true
    if (next !== undefined) this.queue.passOn(next.queue)
    await this.member?.leave()
  }

  /** Forgets the ceiling, because the operator asks for it. Returns whether there was one. */
  retry(): boolean {
    const known = isBounded(this.learner)
    this.learner?.law.forget()
    this.member?.lifted()
    if (known) this.#deps.log.info('what the device can take at once is forgotten, as the operator says')
    return known
  }

  /** Call this when the wall clock was set, because the times of the ceiling change with it. */
  retime(): void {
    this.learner?.law.retime(this.#kept())
  }

  /** The places for `postern status`. */
  condition(): PlacesCondition {
    const { ceiling } = this.learner?.law ?? {}
    const until = ceiling && nextAttempt(ceiling)
    return {
      route: this.#deps.route ?? null,
      used: this.queue.inside,
      limit: this.queue.places,
      learned: this.learner !== undefined,
      triedAgainAt: until === undefined ? null : this.#onWallClock(until),
      wall: ceiling?.wall !== undefined,
      doubted: ceiling?.wall?.doubted === true,
      fleet: this.member?.sum ?? null,
      ceiling: (ceiling && roomUnder(ceiling)) ?? null,
    }
  }

  /** Whether requests waited for these places over the last day, and how many places would do. */
  waited(): WaitsCondition {
    const most = Math.min(this.#most, this.member?.most ?? this.#most)
    return this.waits.condition({
      areAll: this.queue.places >= most,
      max: this.#most,
      isCeiling: isBounded(this.learner),
    })
  }

  #kept(): Ceiling {
    const { route = '', inFleet, ceilings } = this.#deps
    const ceiling = ceilings.of(route, this.#device)
    return inFleet ? ceiling : withoutFleet(ceiling)
  }

  /** Logs the number if it has doubled or halved since the last log line. */
  #placesChanged(reason: PlacesReason, places: number): void {
    const { metrics, log } = this.#deps
    metrics.limitChanged(reason)
    if (places < 2 * this.#logged && places > this.#logged / 2) return
    this.#logged = places
    log.info({ limit: places, reason }, 'learned how many requests the device can take at once')
  }

  #ceilingChanged(ceiling: Ceiling, cause: CeilingCause): void {
    if (this.#left) return
    const { route = '', ceilings, metrics, log } = this.#deps
    ceilings.keep(route, this.#device, ceiling)
    this.member?.changed(ceiling, cause)
    if (cause === 'doubted') log.warn({ limit: ceiling.wall?.places }, DOUBTED)
    if (!isStrike(cause)) return
    const kind = ceiling.guess === undefined ? 'broke' : 'guess'
    metrics.struck(kind)
    const until = nextAttempt(ceiling)
    const triedAgainAt = until === undefined ? undefined : new Date(this.#onWallClock(until)).toISOString()
    const remedy = kind === 'broke' ? TROUBLES.PosternDeviceBroke.remedy : undefined
    log.warn({ limit: mostUnder(ceiling), reason: cause, triedAgainAt, remedy }, STRIKES[kind])
  }

  #onWallClock(time: number): number {
    const { clock } = this.#deps
    return Math.round(time + clock.wall() - clock.monotonic())
  }
}

/** Whether the device has shown that some number of requests is too many. */
function isBounded(learner: Learner | undefined): boolean {
  return learner !== undefined && learner.law.ceiling !== UNKNOWN
}

/** The places together have no more connections than places: those that one service keeps idle close when another opens one. */
function makeRoom(pools: ReadonlySet<Pool>, places: number): void {
  if (pools.size < 2) return
  let present = 0
  for (const pool of pools) present += pool.present
  if (present > places) for (const pool of pools) pool.closeIdle()
}

function capacityOf(
  queue: BoundedQueue,
  learner: Learner | undefined,
  pools: () => ReadonlySet<Pool>,
): Capacity {
  return {
    isFull: () => queue.places === 1 || isBounded(learner),
    load: queue,
    opens(present) {
      makeRoom(pools(), queue.places)
      learner?.opens(present)
    },
    refused: () => learner?.refused(),
    reset: () => learner?.reset(),
  }
}
