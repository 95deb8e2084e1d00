import {
  attemptAt,
  broken,
  type Ceiling,
  disproved,
  doubted,
  guessed,
  mostUnder,
  UNKNOWN,
} from './ceilings.ts'
import { type DevicePlace, DevicePlaces, type Suspicion } from './device-places.ts'
import { Trials } from './trials.ts'
import { FAST, UsualTimes } from './usual-times.ts'

/** Why the bound changed: the label of `postern_upstream_limit_changes_total`. */
export type LimitReason = 'keeps_up' | 'silent' | 'latency' | Strike | 'tried_again' | 'shared'

/** How the device has shown that it has no room for more requests at once. */
export type Strike = 'refused' | 'hangs'

/**
 * Why the ceiling is another one. `doubted`: the device was away with no more requests than broke it. `carried`: it has answered more.
 * `attempt`: one more is tried. `shared`: the fleet says so. `forgotten`: the operator does.
 */
export type CeilingCause = Strike | 'doubted' | 'carried' | 'attempt' | 'shared' | 'forgotten'

/** Whether the device has shown that it has no room above the ceiling. */
export function isStrike(cause: CeilingCause): cause is Strike {
  return cause === 'refused' || cause === 'hangs'
}

/** What happens to the bound. */
export interface MeasureEvents {
  readonly onChange?: (reason: LimitReason) => void
  readonly onCeiling?: (cause: CeilingCause) => void
}

/** When the device went away (ms), and how many requests it had then that had worked at once. */
export interface Outage {
  readonly at: number
  readonly had: number
}

/** It begins with this many places. */
const FIRST = 2
/** Above so many places, and where nothing is known, one more is given at a time. */
const CAREFUL = 4
/** So many answers, over at least so long (ms), show that the device carries the requests that are at it. */
const ENOUGH_ANSWERS = 32
const A_WHILE = 100
/** A device that answers nothing for so long (ms) after it refused, or for so many times the usual time, is broken. */
const BROKEN = 100
const TIMES_BROKEN = 2
/** What breaks the device within this time (ms) after one more request came to it: that one was too many. */
const AT_ONCE = 1_000
/** Requests wait, and no answer and no sign of overload has come: the bound rises after this time (ms), then at each look. */
const SILENCE = 500
/** The same if all requests at the device were answered, and their responses go on. */
const ANSWERED_SILENCE = 200
/** From so many places on, twice as many may bury a device that has slowed down: the first silence is longer. */
const MANY = 8
/** A bound that was raised goes back after a silence of so many times the usual time, and at least so long (ms). */
const TIMES_OF_BURIAL = 8
const SHORTEST_BURIAL = 200
/** Twice as many places as fewer than this bury no device. */
const LEAST_BURIED = 4
/** So many responses came since a request was sent to a new place, and its own did not: does it hang? */
const PASSED_BY = 8
/** Responses that take so many times their usual time show that the device is overloaded. */
const SLOW = 4
/** So many signs in a row that there is no room for a new place make a ceiling. */
const STRIKES = 3
/** A refusal, an answer and a refusal within this time (ms): the device is there, and refuses. */
const ALIVE = 1_000

/**
 * Learns how many requests a device can take at once. It knows no clock: each event carries the time (ms, monotonic).
 *
 * Only what happens in new places, refused connections, and the times of responses lower the bound. A page that fails or takes long also
 * does so in a place that has worked, so no client drives the bound below what the device has answered at once.
 */
export class Measure {
  readonly #min: number
  readonly #max: number
  readonly #careful: number
  readonly #onChange: (reason: LimitReason) => void
  readonly #onCeiling: (cause: CeilingCause) => void
  readonly #trials: Trials
  readonly #times = new UsualTimes()
  readonly #places = new DevicePlaces()
  #ceiling: Ceiling
  /** So many requests at once were answered for a while; and what is seen of more. */
  #held = 0
  #more = { answers: 0, since: 0, least: Number.POSITIVE_INFINITY }
  /** One more place is given when the places so far have held. */
  #reach: number
  /** The most requests that were at the device since the last strike, and since when. */
  #peak = 0
  #peakAt = Number.NEGATIVE_INFINITY
  /** Requests at the device that may change it, and when one last was there. */
  #changing = 0
  #changedAt = Number.NEGATIVE_INFINITY
  /** The device refuses everything since then; whether more than `#held` were at it when that began. */
  #awaySince = Number.POSITIVE_INFINITY
  /** The bound that may have broken the device: a wall, if no answer comes. */
  #suspected: number | undefined
  /** When the device last went away, and how many requests it had from here then that had worked at once before. */
  #outage: Outage = { at: Number.NEGATIVE_INFINITY, had: 0 }
  /** It has answered since. */
  #isBack = true
  /** When the ceiling was last struck. */
  #brokeAt = Number.NEGATIVE_INFINITY
  /** The bound that is tried although there is a ceiling. */
  #attempt = Number.POSITIVE_INFINITY
  #answers = 0
  #path = '' // of the last request that was sent
  /** The bound was last changed. Only requests that were sent since then count. */
  #since = 0
  #answeredAt = Number.NEGATIVE_INFINITY
  #refusedAt = Number.NEGATIVE_INFINITY
  #struckAt = Number.NEGATIVE_INFINITY
  #strikes = 0
  #silentSince = 0
  /** The bound was raised because the device is silent, or lowered; until the next response it is neither again. */
  #silence: 'raised' | 'lowered' | undefined
  #suspicion: Suspicion | undefined
  /** The last response took long for its path: the device is overloaded rather than hanging. */
  #slow = false

  /**
   * @param inFleet other sidecars have requests at the device, too: one place is given at a time from the start, because all of them grow
   * @param ceiling from before a restart
   */
  constructor(
    { min, max, inFleet = false }: { readonly min: number; readonly max: number; readonly inFleet?: boolean },
    { onChange = () => {}, onCeiling = () => {} }: MeasureEvents = {},
    ceiling: Ceiling = UNKNOWN,
  ) {
    this.#min = min
    this.#max = max
    this.#onChange = onChange
    this.#onCeiling = onCeiling
    this.#ceiling = ceiling
    this.#careful = inFleet ? 1 : CAREFUL
    this.#reach = this.#nextReach
    this.#trials = new Trials(min, Math.min(Math.max(FIRST, min), this.#most))
  }

  get limit(): number {
    return Math.min(this.#trials.limit, this.#reach)
  }

  /** Empty if the device has not shown that any number is too many. */
  get ceiling(): Ceiling {
    return this.#ceiling
  }

  /** Forgets the ceiling, because the operator says so. One more place is given at a time, as ever. */
  forget(): void {
    this.#know(UNKNOWN, 'forgotten')
    this.#attempt = Number.POSITIVE_INFINITY
    this.#trials.tryMore()
  }

  /** When the device last went away. */
  get outage(): Outage {
    return this.#outage
  }

  /** How many responses have come. */
  get answers(): number {
    return this.#answers
  }

  /** Whether so many requests at once were answered for a while. */
  carries(limit: number): boolean {
    return this.#held >= limit
  }

  /** No request gets a place before the next call of `share`: the other sidecars of the fleet still have all. */
  wait(): void {
    this.#reach = 0
  }

  /**
   * The fleet says so, at `now` (ms).
   *
   * @param ceiling with the share of this sidecar
   * @param isNew another word of the fleet than before
   */
  share(ceiling: Ceiling, isNew: boolean, now: number): void {
    const most = this.#most
    if (this.#reach === 0) this.#reach = this.#nextReach
    if (isNew) this.#brokeAt = now
    this.#know(ceiling, 'shared')
    if (this.#most > most) this.#trials.tryMore()
    if (this.#most >= this.#trials.limit) return
    // What has worked above counts no more: the others have these places now.
    this.#held = Math.min(this.#held, this.#most)
    this.#peak = Math.min(this.#peak, this.#most)
    this.#places.regard(Math.min(this.#places.carried, this.#most))
    this.#set(Math.min(this.#trials.found, this.#most), 'shared', now)
  }

  /** The wall clock was set: the same ceiling has other times. */
  retime(ceiling: Ceiling): void {
    this.#ceiling = ceiling
  }

  /** A request that may change the device comes to it (1) or has left it (-1). A reboot may follow for that reason. */
  changing(by: 1 | -1, now: number): void {
    this.#changing += by
    this.#changedAt = now
  }

  /** The last byte of a request was sent, while `level` requests had a place, this one included. Returns its place. */
  sent(path: string, level: number, now: number): DevicePlace {
    this.#path = path
    this.#passes(level, now)
    if (level > this.#held) this.#places.note(level)
    return this.#places.take(path, level, this.#answers, now)
  }

  /** A connection is opened: so many are at the device then, also those that end. */
  opens(present: number, now: number): void {
    this.#passes(present, now)
  }

  /** The head of the response has come. */
  answered(place: DevicePlace, now: number): void {
    const { path, sentAt, level } = place
    this.#answers += 1
    place.answered = true
    this.#answeredAt = this.#silentSince = now
    this.#isBack = true
    this.#awaySince = Number.POSITIVE_INFINITY
    this.#suspected = undefined
    this.#silence = undefined
    if (!place.worked) this.#works(place, now)
    if (place.peak > this.#held) this.#holds(Math.min(place.peak, this.limit), sentAt, now)
    const trials = this.#trials
    const time = now - sentAt
    const ratio = time <= FAST ? 1 : this.#times.ratio(path, time, trials.learns(level))
    this.#slow = ratio > SLOW
    const climbs = this.limit < trials.limit
    const few = climbs ? this.limit - 1 : trials.few
    const tells = level > few && level <= this.limit && this.#places.carried > 0.75 * level
    if (sentAt < this.#since || !tells) return
    const { limit, found } = trials
    const finding = climbs ? trials.approach(level, ratio) : trials.sample(level, ratio, this.#most)
    if (finding?.drift !== undefined) this.#times.drift(finding.drift)
    if (trials.limit !== limit) this.#since = now
    if (finding !== undefined && trials.found !== found) this.#onChange(finding.reason)
  }

  /** The request has no response: it came too late, or was unusable. */
  failed(place: DevicePlace, now: number): void {
    if (!place.worked) this.#strike('refused', now)
  }

  /** The request has ended, in any way. */
  left(place: DevicePlace): void {
    place.busy = false
    if (this.#suspicion?.place === place) this.#suspicion = undefined
  }

  /** The device dropped a new connection before a byte of a response, while `level` requests had a place. */
  reset(level: number, now: number): void {
    this.#passes(level, now)
    this.#goesAway(level, now)
    this.#confirm(now)
    if (Math.min(level, this.limit) > this.#places.carried) this.#strike('refused', now)
  }

  /** The device refused a connection while `level` requests had a place. A device that answers nothing meanwhile is only off. */
  refused(level: number, now: number): void {
    const alive = this.#refusedAt < this.#answeredAt && now - this.#refusedAt < ALIVE
    // The device dropped a connection in a new place, and since then refuses all.
    const crashed = this.#answeredAt < this.#refusedAt && now - this.#struckAt < ALIVE
    const gone = this.#answeredAt < this.#refusedAt
    this.#refusedAt = this.#silentSince = now
    this.#goesAway(level, now)
    this.#away(level, now)
    this.#confirm(now)
    const { carried } = this.#places
    if (gone && this.#peak > carried && this.#awaySince - this.#peakAt <= AT_ONCE && carried > 0) {
      this.#setCeiling('refused', now)
      return
    }
    // The bound may be lowered already, and these requests be from before.
    if (level <= 1 || (level > carried && this.limit <= carried)) return
    if (level > carried) {
      if (crashed) this.#setCeiling('refused', now)
      else if (alive) this.#strike('refused', now)
    } else if (alive && now - this.#since > ALIVE) {
      this.#places.regard(0)
      this.#set(this.#trials.found >> 1, 'refused', now)
    }
  }

  /** Called several times a second while requests wait, without a pause since `waitsSince`. */
  look(level: number, waitsSince: number, now: number): void {
    if (this.limit === 0) return
    const next = attemptAt(this.#ceiling, now)
    if (next !== this.#ceiling) {
      this.#know(next, 'attempt')
      this.#attempt = mostUnder(next)
      this.#trials.tryMore()
    }
    if (this.#suspicion !== undefined) {
      if (now >= this.#suspicion.until) this.#acquit(this.#suspicion, now)
      return
    }
    const newest = this.#places.waitingNew
    if (newest !== undefined && this.#hangs(newest, now)) this.#suspect(newest, now)
    else if (this.#buries(now)) {
      this.#silence = 'lowered'
      if (this.#trials.limit === this.#trials.found) this.#set(this.#places.carried, 'latency', now)
      else this.#trials.giveUp()
      this.#since = now
      // A silence after the bound was raised is overload, not a reason to raise it again.
    } else if (this.#silence !== 'lowered' && level >= this.limit && this.#isSilent(level, waitsSince, now)) {
      this.#silence = 'raised'
      if (this.limit >= this.#reach) this.#reach += 1
      if (this.limit >= this.#trials.limit) this.#set(2 * this.limit, 'silent', now, true)
    }
  }

  get #nextReach(): number {
    return Math.max(this.#careful, this.#min, this.#held + 1)
  }

  get #most(): number {
    return Math.max(this.#min, Math.min(this.#max, mostUnder(this.#ceiling)))
  }

  #works(place: DevicePlace, now: number): void {
    if (this.#suspicion !== undefined) {
      const { limit } = this.#suspicion
      this.#suspicion = undefined
      if (!this.#strike('hangs', now)) this.#set(limit, 'tried_again', now)
      return
    }
    this.#strikes = 0
    this.#places.works(place)
    // The device has room above its ceiling.
    if (this.#places.carried < this.#attempt || place.level > this.#attempt) return
    const { guess, wall } = this.#ceiling
    if (guess !== undefined) this.#know(wall === undefined ? UNKNOWN : { wall }, 'carried')
  }

  /** So many were at the device, and it answered one that was sent meanwhile. */
  #holds(level: number, sentAt: number, now: number): void {
    const more = this.#more
    if (level <= this.#held || sentAt < this.#brokeAt) return
    if (more.answers === 0) more.since = now
    more.answers += 1
    more.least = Math.min(more.least, level)
    if (more.answers < ENOUGH_ANSWERS || now - more.since < A_WHILE) return
    this.#held = more.least
    this.#reach = Math.max(this.#reach, this.#held + 1)
    this.#more = { answers: 0, since: 0, least: Number.POSITIVE_INFINITY }
    this.#know(disproved(this.#ceiling, this.#held), 'carried')
  }

  /** Those above the bound are from before it fell. */
  #passes(level: number, now: number): void {
    const peak = Math.min(level, this.limit)
    if (peak <= this.#peak || this.#awaySince < now) return
    this.#peak = peak
    this.#peakAt = now
  }

  /** Refuses or drops a connection, for the first time since it has answered. */
  #goesAway(level: number, now: number): void {
    if (!this.#isBack) return
    this.#isBack = false
    this.#outage = { at: now, had: Math.min(level, this.limit, this.#held) }
  }

  /** Refuses everything for longer than a device that is only crowded. */
  #away(level: number, now: number): void {
    if (this.#awaySince === Number.POSITIVE_INFINITY) this.#awaySince = now
    const { wall } = this.#ceiling
    if (wall === undefined || level > wall.limit || now - this.#awaySince < ALIVE) return
    // It has answered since it broke: this is another outage.
    if (this.#answeredAt > this.#brokeAt && this.#awaySince > this.#answeredAt)
      this.#know(doubted(this.#ceiling, now), 'doubted')
  }

  /** No answer has come since the device was passed its bound, and it still takes nothing: that broke it. */
  #confirm(now: number): void {
    const limit = this.#suspected
    const least = Math.max(BROKEN, TIMES_BROKEN * (this.#times.of(this.#path) ?? 0))
    if (limit === undefined || now - this.#brokeAt < least) return
    this.#suspected = undefined
    this.#know(broken(this.#ceiling, limit, now), 'refused')
  }

  /** Whether nothing but the number of requests is likely to have caused what the device does now. */
  #isWall(now: number): boolean {
    const { carried } = this.#places
    const changed = this.#changing > 0 || now - this.#changedAt < AT_ONCE
    return !changed && this.#held >= carried && Math.min(now, this.#awaySince) - this.#peakAt <= AT_ONCE
  }

  #know(ceiling: Ceiling, cause: CeilingCause): void {
    if (ceiling === this.#ceiling) return
    this.#ceiling = ceiling
    this.#onCeiling(cause)
  }

  /** A sign that the device has no room for a new place. Returns whether it is the last one that was needed. */
  #strike(reason: Strike, now: number): boolean {
    if (this.#places.carried === 0) return false
    this.#strikes += 1
    this.#struckAt = now
    const last = this.#strikes >= STRIKES
    if (last) this.#setCeiling(reason, now)
    return last
  }

  #setCeiling(reason: Strike, now: number): void {
    const limit = Math.max(1, this.#places.carried)
    this.#suspected = reason === 'refused' && this.#isWall(now) ? limit : undefined
    this.#know(guessed(this.#ceiling, limit, now), reason)
    this.#brokeAt = now
    this.#held = Math.min(this.#held, limit)
    this.#reach = this.#nextReach
    this.#peak = limit
    this.#more = { answers: 0, since: 0, least: Number.POSITIVE_INFINITY }
    this.#attempt = Number.POSITIVE_INFINITY
    this.#strikes = 0
    this.#suspicion = undefined
    this.#set(limit, reason, now)
  }

  #hangs({ sentAt, answers, path }: DevicePlace, now: number): boolean {
    if (this.#answers - answers < PASSED_BY || this.#places.carried === 0 || this.#slow) return false
    return now - sentAt >= Math.max(SILENCE, 4 * (this.#times.of(path) ?? 0))
  }

  #suspect(place: DevicePlace, now: number): void {
    const until = now + SILENCE + PASSED_BY * (this.#times.of(this.#path) ?? 0)
    this.#suspicion = { place, until, limit: this.#trials.found }
    this.#set(this.#places.carried, 'hangs', now)
  }

  #acquit({ limit }: Suspicion, now: number): void {
    this.#suspicion = undefined
    this.#places.regard(limit)
    this.#set(limit, 'tried_again', now, true)
  }

  /** The bound was raised, and since then the device is silent, for much longer than usual. */
  #buries(now: number): boolean {
    const { waiting, carried } = this.#places
    const before = Math.min(carried, this.#trials.found)
    if (this.#silence !== undefined || before < LEAST_BURIED) return false
    if (Math.min(waiting.length, this.limit) <= before) return false
    const silence = now - Math.max(this.#answeredAt, ...waiting.map(({ sentAt }) => sentAt))
    // A path that has no usual time may hang.
    const usual = Math.max(...waiting.map(({ path }) => this.#times.of(path) ?? Number.POSITIVE_INFINITY))
    return silence >= Math.max(SHORTEST_BURIAL, TIMES_OF_BURIAL * usual)
  }

  #isSilent(level: number, waitsSince: number, now: number): boolean {
    if (this.limit >= this.#most) return false
    const many = level >= MANY && this.#silence !== 'raised'
    // Responses that go on for long hold places, but no answer is due.
    const awaits = this.#places.waiting.length > 0
    const longest = awaits ? Math.max(SILENCE, this.#times.silence(this.#path, many)) : ANSWERED_SILENCE
    if (now - Math.max(this.#silentSince, waitsSince) < longest) return false
    this.#silentSince = now - longest
    return true
  }

  /** @param doubles whether the bound goes on to double while the device keeps up */
  #set(limit: number, reason: LimitReason, now: number, doubles = false): void {
    const before = this.#trials.found
    this.#trials.begin(Math.max(this.#min, Math.min(limit, this.#most)), doubles)
    this.#since = now
    if (this.#trials.found !== before) this.#onChange(reason)
  }
}
