import type { FleetWall, PlacesEvent } from '../fleet/device-wall.ts'
import { SAME_OUTAGE } from '../fleet/device-wall.ts'
import type { FleetPlaces, PlacesMember, SharedPlaces, Standing } from '../fleet/places.ts'
import {
  type Ceiling,
  type CeilingCause,
  doubted,
  isStrike,
  UNKNOWN,
  type Wall,
} from '../forward/ceilings.ts'
import type { Learner } from '../forward/learner.ts'
import type { Logger } from '../record/log.ts'
import type { BoundedQueue } from '../system/bounded-queue.ts'
import type { Clock } from '../system/clock.ts'

interface Dependencies {
  /** The service and its device. */
  readonly name: string
  /** The id of this sidecar. */
  readonly sidecar: string
  readonly learner: Learner
  readonly queue: BoundedQueue
  /** How many requests of the sidecar's own have places: they make it not active. */
  readonly own?: () => number
  readonly clock: Clock
  readonly log: Logger
}

/** A sidecar without a request for this time (ms) needs only one place. */
const ACTIVE = 600_000
/** The version of a wall that a sidecar has found alone. Every version of a fleet is higher. */
const VERSION_ALONE = 1

/** The places of one service at a sidecar of a fleet. It reports events to the fleet, and adopts the share that the fleet gives it. */
export class FleetMember implements PlacesMember {
  readonly name: string
  readonly events: PlacesEvent[] = []
  readonly #sidecar: string
  readonly #learner: Learner
  readonly #queue: BoundedQueue
  readonly #own: () => number
  readonly #clock: Clock
  readonly #log: Logger
  /** Undefined before `join`: events wait. */
  #fleet: Pick<FleetPlaces, 'news' | 'leave'> | undefined
  #ceiling: Ceiling
  #known: FleetWall | undefined
  /** The share of this sidecar; undefined before the first answer of the store, and without a wall. */
  #share: number | undefined
  #until = Number.POSITIVE_INFINITY
  #answers = 0
  #activeAt = Number.NEGATIVE_INFINITY

  constructor({ name, sidecar, learner, queue, own = () => 0, clock, log }: Dependencies) {
    this.name = name
    this.#sidecar = sidecar
    this.#learner = learner
    this.#queue = queue
    this.#own = own
    this.#clock = clock
    this.#log = log
    this.#ceiling = learner.law.ceiling
    this.#known = knownFrom(this.#ceiling.wall, clock.monotonic())
  }

  /** Shares the wall with the fleet from now on. Resolves when the store has answered or its answer is overdue. */
  async join(fleet: Pick<FleetPlaces, 'join' | 'news' | 'leave'>): Promise<void> {
    this.#fleet = fleet
    await fleet.join(this)
  }

  /** Shares nothing from now on. */
  async leave(): Promise<void> {
    await this.#fleet?.leave(this)
  }

  /** Call this when the ceiling of this sidecar has changed. A change that this sidecar has found itself is reported to the fleet. */
  changed(next: Ceiling, cause: CeilingCause): void {
    const { wall: before } = this.#ceiling
    const { wall } = next
    this.#ceiling = next
    const { at } = this.#learner.law.outage
    if (isStrike(cause) && wall !== undefined && wall.fleet === undefined && wall !== before) {
      this.#tell({ kind: 'broke', limit: wall.places, at })
    } else if (before?.fleet === undefined) return
    else if (isStrike(cause) && before.kind === 'tried' && wall === before)
      this.#tell({ kind: 'struck', limit: before.places, at })
    else if (cause === 'doubted') this.#tell({ kind: 'doubted', limit: before.places, at })
    else return
    void this.#fleet?.news()
  }

  /** Call this when the operator has lifted the wall. */
  lifted(): void {
    this.#share = undefined
    this.#tell({ kind: 'lifted', limit: 0, at: this.#clock.monotonic() })
    void this.#fleet?.news()
  }

  standing(): Standing {
    const now = this.#clock.monotonic()
    const { inside, places } = this.#queue
    const { answers, outage } = this.#learner.law
    if (inside > this.#own() || answers !== this.#answers) this.#activeAt = now
    this.#answers = answers
    const share = this.#share
    return {
      sidecar: this.#sidecar,
      places,
      inside,
      // An outage ends requests, so the number that worked before it counts.
      level: now - outage.at < SAME_OUTAGE ? outage.had : inside,
      isActive: now - this.#activeAt < ACTIVE,
      carries: share !== undefined && inside >= share && this.#learner.law.carries(share),
      known: this.#known && { ...this.#known, left: leftOf(this.#ceiling.wall, now) },
    }
  }

  /** The most places now. One if the share has expired, as at once after a long suspension of the process. */
  get most(): number {
    const isOver = this.#share !== undefined && this.#clock.monotonic() >= this.#until
    return isOver ? 1 : Number.POSITIVE_INFINITY
  }

  adopt(shared: SharedPlaces): void {
    this.#until = shared.until
    if (shared.share === undefined) this.#leaveWall(shared)
    else this.#takeShare(shared, shared.share)
    const { version, kind, sum, left } = shared
    if (version > 0) this.#known = { version, kind, sum, left }
  }

  alone(): boolean {
    const isShared = this.#share !== undefined || this.#ceiling.wall?.fleet !== undefined
    if (this.#known === undefined || !isShared) return false
    if (this.#share !== 1) {
      this.#log.warn('the shared store does not answer: this sidecar has one place at the device')
      this.#takeShare(this.#known, 1)
    }
    return true
  }

  #leaveWall({ kind, version }: SharedPlaces): void {
    const isNew = this.#known?.version !== version
    this.#share = undefined
    const { guess, wall } = this.#ceiling
    if (isNew && kind === 'lifted') this.#learner.share(UNKNOWN, true)
    else if (wall !== undefined) {
      const others = guess ? { guess } : UNKNOWN
      const left = kind === 'doubted' ? doubted(this.#ceiling, this.#clock.monotonic()) : others
      this.#learner.share(left, isNew)
    }
  }

  #takeShare({ kind, version, sum, left }: FleetWall, given: number): void {
    const now = this.#clock.monotonic()
    const isNew = this.#known?.version !== version
    if (!isNew && given === this.#share) return
    this.#share = given
    if (given === 0) this.#learner.law.wait()
    else {
      const { guess } = this.#ceiling
      const fleet = { sum, version }
      const rest =
        kind === 'barred' || kind === 'tried' ? { kind } : { kind: 'broke' as const, until: now + left }
      this.#learner.share({ ...(guess && { guess }), wall: { ...rest, places: given, fleet } }, isNew)
    }
    this.#log.info({ limit: given, sum, state: kind }, 'the sidecars share the places at the device')
  }

  /** Queues an event for the fleet. It replaces an earlier event of the same kind. */
  #tell(event: PlacesEvent): void {
    const before = this.events.findIndex(({ kind }) => kind === event.kind)
    if (before >= 0) this.events.splice(before, 1)
    this.events.push(event)
  }
}

function knownFrom(wall: Wall | undefined, now: number): FleetWall | undefined {
  if (wall === undefined) return undefined
  const { kind, places, fleet = { sum: places, version: VERSION_ALONE } } = wall
  return { ...fleet, kind, left: leftOf(wall, now) }
}

/** The time (ms) until the fleet tries one more place. */
function leftOf(wall: Wall | undefined, now: number): number {
  return wall?.kind === 'broke' ? Math.max(0, wall.until - now) : 0
}
