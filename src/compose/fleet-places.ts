import { ALONE, type FleetWall, type PlacesEvent, SAME_OUTAGE } from '../fleet/device-wall.ts'
import type { FleetPlaces, PlacesMember, SharedPlaces, Standing } from '../fleet/places.ts'
import { type Ceiling, type CeilingCause, isStrike, UNKNOWN, type Wall } from '../forward/ceiling.ts'
import type { Learner } from '../forward/learner.ts'
import type { Logger } from '../record/log.ts'
import type { BoundedQueue } from '../system/bounded-queue.ts'
import type { Clock } from '../system/clock.ts'

interface Dependencies {
  /** The service and its device. */
  readonly name: string
  /** The most places that all sidecars may have together. */
  readonly max: number
  /** The id of this sidecar. */
  readonly sidecar: string
  /** Undefined if the number of places is fixed. */
  readonly learner: Learner | undefined
  readonly queue: BoundedQueue
  /** How many requests of the sidecar's own have places: they make it not active. */
  readonly own?: () => number
  readonly clock: Clock
  readonly log: Logger
}

/** A sidecar without a request for this time (ms) needs only one place. */
const ACTIVE = 600_000

/** The places of one service at a sidecar of a fleet. It reports events to the fleet, and adopts the share that the fleet gives it. */
export class FleetMember implements PlacesMember {
  readonly name: string
  readonly max: number
  readonly events: PlacesEvent[] = []
  readonly #sidecar: string
  readonly #learner: Learner | undefined
  readonly #queue: BoundedQueue
  readonly #own: () => number
  readonly #clock: Clock
  readonly #log: Logger
  /** Undefined before `join`: events wait. */
  #fleet: Pick<FleetPlaces, 'news' | 'leave'> | undefined
  /** The wall before the next change of the ceiling. */
  #wall: Wall | undefined
  #known: FleetWall | undefined
  /** The share of this sidecar: one before the first answer of the store. */
  #share = 1
  /** The places of all sidecars; undefined before the first answer of the store. */
  #sum: number | undefined
  #until = Number.POSITIVE_INFINITY
  #answers = 0
  #activeAt = Number.NEGATIVE_INFINITY

  constructor({ name, max, sidecar, learner, queue, own = () => 0, clock, log }: Dependencies) {
    this.name = name
    this.max = max
    this.#sidecar = sidecar
    this.#learner = learner
    this.#queue = queue
    this.#own = own
    this.#clock = clock
    this.#log = log
    const wall = learner?.law.ceiling.wall
    this.#wall = wall
    this.#known = wall && { version: wall.fleet ?? ALONE, sum: wall.places }
  }

  /** Shares the places with the fleet from now on. Resolves when the store has answered or its answer is overdue. */
  async join(fleet: Pick<FleetPlaces, 'join' | 'news' | 'leave'>): Promise<void> {
    this.#fleet = fleet
    await fleet.join(this)
  }

  /** Shares nothing from now on. */
  async leave(): Promise<void> {
    await this.#fleet?.leave(this)
  }

  /** Call this when the ceiling of this sidecar has changed. A wall that this sidecar has found itself is reported to the fleet. */
  changed({ wall }: Ceiling, cause: CeilingCause): void {
    const before = this.#wall
    this.#wall = wall
    if (!isStrike(cause) || wall === undefined || wall === before) return
    this.#tell({ kind: 'broke', limit: wall.places, at: this.#learner?.law.outage.at ?? 0 })
  }

  /** Call this when the operator has lifted the wall. */
  lifted(): void {
    this.#tell({ kind: 'lifted', limit: 0, at: this.#clock.monotonic() })
  }

  standing(): Standing {
    const now = this.#clock.monotonic()
    const { inside, waiting } = this.#queue
    const { answers = 0, outage = undefined } = this.#learner?.law ?? {}
    if (inside + waiting > this.#own() || answers !== this.#answers) this.#activeAt = now
    this.#answers = answers
    return {
      sidecar: this.#sidecar,
      inside,
      waiting,
      // An outage ends requests, so the number that worked before it counts.
      level: outage !== undefined && now - outage.at < SAME_OUTAGE ? outage.had : inside,
      isActive: now - this.#activeAt < ACTIVE,
      known: this.#known,
    }
  }

  /** The most places now. One if the share has expired, as at once after a long suspension of the process. */
  get most(): number {
    return this.#clock.monotonic() < this.#until ? this.#share : Math.min(this.#share, 1)
  }

  /** The places of all sidecars together; undefined before the store has said what they are. */
  get sum(): number | undefined {
    return this.#sum
  }

  adopt({ version, sum, most, share, until }: SharedPlaces): void {
    this.#until = until
    const isSame = share === this.#share && most === this.#sum
    const ceiling = this.#ceilingUnder({ version, sum })
    this.#known = version > 0 ? { version, sum } : this.#known
    this.#sum = most
    if (isSame && ceiling === this.#learner?.law.ceiling) return
    this.#take(share, ceiling)
    if (!isSame) this.#log.info({ limit: share, sum: most }, 'the sidecars share the places at the device')
  }

  alone(): void {
    if (this.#share > 1 || this.#sum === undefined)
      this.#log.warn('the shared store does not answer: this sidecar has at most one place at the device')
    this.#sum ??= Math.min(this.max, this.#known?.sum || this.max)
    if (this.#share > 1) this.#take(1, this.#learner?.law.ceiling)
  }

  /** The ceiling of this sidecar with the wall of the fleet. */
  #ceilingUnder({ version, sum }: FleetWall): Ceiling | undefined {
    const { ceiling } = this.#learner?.law ?? {}
    // The fleet does not know yet what this sidecar has found.
    if (ceiling === undefined || version === 0 || this.events.length > 0) return ceiling
    const { guess, wall } = ceiling
    if (sum > 0)
      return wall?.fleet === version
        ? ceiling
        : { ...(guess && { guess }), wall: { places: sum, fleet: version } }
    // A sidecar that starts learns of what the operator has lifted long ago, too.
    return this.#known === undefined || this.#known.version === version ? ceiling : UNKNOWN
  }

  #take(share: number, ceiling: Ceiling | undefined): void {
    this.#share = share
    if (ceiling !== undefined) this.#learner?.share(Math.max(share, 1), ceiling)
    this.#queue.fill()
  }

  /** Queues an event for the fleet. It replaces an earlier event of the same kind. */
  #tell(event: PlacesEvent): void {
    const before = this.events.findIndex(({ kind }) => kind === event.kind)
    if (before >= 0) this.events.splice(before, 1)
    this.events.push(event)
    void this.#fleet?.news()
  }
}
