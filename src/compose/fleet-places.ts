import type { FleetWall, PlacesEvent, PlacesMember, SharedPlaces, Standing } from '../fleet/places.ts'
import { type Ceiling, doubted, UNKNOWN, type Wall } from '../forward/ceilings.ts'
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
  readonly clock: Clock
  readonly log: Logger
}

/** A sidecar that had no request for so long (ms) needs one place only. */
const ACTIVE = 600_000
/** Signs of one outage at several sidecars are at most so far apart (ms). */
const SAME = 5_000
/** The word of a sidecar that was alone: any of the fleet counts more. */
const FIRST_WORD = 1

export type FleetMember = ReturnType<typeof createFleetMember>

/** The places of one service at a sidecar of a fleet: what it tells the others, and what it takes over from them. */
export function createFleetMember({ name, sidecar, learner, queue, clock, log }: Dependencies) {
  const events: PlacesEvent[] = []
  let ceiling = learner.ceiling
  let known = knownFrom(ceiling.wall, clock.monotonic())
  /** The share of this sidecar; undefined before the first answer of the store, and without a wall. */
  let share: number | undefined
  let hasStarted = false
  let answers = 0
  let activeAt = clock.monotonic()
  /** The outage that the others were told of. */
  let toldAt = Number.NEGATIVE_INFINITY
  let isAdopting = false

  function tell(event: PlacesEvent): void {
    const before = events.findIndex(({ kind }) => kind === event.kind)
    if (before >= 0) events.splice(before, 1)
    events.push(event)
  }

  function take(next: Ceiling, isNew: boolean): void {
    isAdopting = true
    learner.share(next, isNew)
    isAdopting = false
  }

  function leaveWall({ kind, version }: SharedPlaces): void {
    const isNew = known?.version !== version
    share = undefined
    const { guess, wall } = ceiling
    if (isNew && kind === 'lifted') take(UNKNOWN, true)
    else if (wall !== undefined)
      take(kind === 'doubted' ? doubted(ceiling, clock.monotonic()) : guess ? { guess } : UNKNOWN, isNew)
  }

  function takeShare(shared: SharedPlaces, given: number): void {
    const { kind, version, sum, left, ago } = shared
    const now = clock.monotonic()
    const isNew = known?.version !== version
    if (!isNew && given === share) return
    share = given
    if (given === 0) learner.wait()
    else {
      const fleet = { sum, version }
      const rest =
        kind === 'barred' || kind === 'tried' ? { kind } : { kind: 'broke' as const, until: now + left }
      take({ ...(ceiling.guess && { guess: ceiling.guess }), wall: { ...rest, limit: given, fleet } }, isNew)
    }
    log.info({ limit: given, sum, state: kind }, 'the sidecars share the places at the device')
    const { at, had } = learner.outage
    if (kind !== 'broke' || at === toldAt || Math.abs(now - at - ago) >= SAME || had === 0) return
    toldAt = at
    tell({ kind: 'had', limit: had, at })
  }

  const member: PlacesMember = {
    name,
    events,
    standing(): Standing {
      const now = clock.monotonic()
      if (queue.inside > 0 || learner.answers !== answers) activeAt = now
      answers = learner.answers
      const { wall } = ceiling
      return {
        sidecar,
        share: share ?? (hasStarted ? queue.places : undefined),
        inside: queue.inside,
        isActive: now - activeAt < ACTIVE,
        carries: share !== undefined && queue.inside >= share && learner.carries(share),
        known: known && { ...known, left: wall?.kind === 'broke' ? Math.max(0, wall.until - now) : 0 },
      }
    },
    adopt(shared) {
      hasStarted = true
      // What happened meanwhile is told first.
      if (events.length > 0) return
      if (shared.share === undefined) leaveWall(shared)
      else takeShare(shared, shared.share)
      const { version, kind, sum, left } = shared
      if (version > 0) known = { version, kind, sum, left }
    },
    alone() {
      hasStarted = true
      if (known === undefined || share === 1 || (share === undefined && ceiling.wall?.fleet === undefined))
        return
      log.warn('the shared store does not answer: this sidecar has one place at the device')
      takeShare({ ...known, ago: Number.POSITIVE_INFINITY, share: 1 }, 1)
    },
  }

  return {
    member,
    /** The ceiling of this sidecar has changed. `isStrike`: the device has shown that it has no room above. */
    changed(next: Ceiling, isStrike: boolean): boolean {
      const { wall: before } = ceiling
      const { wall, guess } = next
      ceiling = next
      if (isAdopting) return false
      const { at } = learner.outage
      if (isStrike && wall !== undefined && wall.fleet === undefined && wall !== before) {
        toldAt = at
        tell({ kind: 'broke', limit: wall.limit, at })
      } else if (isStrike && before?.fleet !== undefined && before.kind === 'tried' && wall === before)
        tell({ kind: 'struck', limit: before.limit, at })
      else if (before?.fleet !== undefined && wall === undefined && guess !== undefined)
        tell({ kind: 'doubted', limit: before.limit, at })
      else return false
      return true
    },
    /** The operator lets the device be tried again. */
    lifted(): void {
      share = undefined
      tell({ kind: 'lifted', limit: 0, at: clock.monotonic() })
    },
  }
}

function knownFrom(wall: Wall | undefined, now: number): FleetWall | undefined {
  if (wall === undefined) return undefined
  const { kind, limit, fleet = { sum: limit, version: FIRST_WORD } } = wall
  return { ...fleet, kind, left: wall.kind === 'broke' ? Math.max(0, wall.until - now) : 0 }
}
