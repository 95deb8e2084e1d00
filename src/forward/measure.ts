import { pathOf } from '../http/request-path.ts'
import type { Limit } from '../system/bounded-queue.ts'
import { Bound, type BoundEvents, type BoundSettings, type Lower, type Raise, type Strike } from './bound.ts'
import { broken, type Ceiling, disproved, doubted, guessed, UNKNOWN } from './ceilings.ts'
import { type DevicePlace, DevicePlaces, type Suspicion } from './device-places.ts'
import { Held } from './held.ts'
import { ALIVE, type Outage, Outages } from './outages.ts'
import { SILENCE, Silence } from './silence.ts'
import { Trials } from './trials.ts'
import { FAST, UsualTimes } from './usual-times.ts'

/** A device that answers nothing for this long (ms) after a strike, and for `TIMES_BROKEN` times the usual time, is broken. */
const BROKEN = 100
const TIMES_BROKEN = 2
/** A request in a new place may hang if this many other responses came since it was sent. */
const PASSED_BY = 8
/** A response that takes more than this many times its usual time shows that the device is overloaded. */
const SLOW = 4
/** This many strikes in a row set a ceiling. */
const STRIKES = 3

/**
 * The requests that tell nothing about the bound: no more of them are at the device than it carries, one more place is free, and it answers
 * at once. Their round trips write here what is known of them, and the measure reads it when it is asked for the next time.
 */
export interface Calm {
  /** Up to this many requests at the device tell nothing. */
  most: number
  /** How many answers have come since the measure was last asked; when the first of them came, and the last (ms). */
  answers: number
  firstAt: number
  lastAt: number
  /** The target of the last request that was sent; empty if there was none. */
  target: string
}

/**
 * Learns how many requests a device can take at once. It knows no clock: each event carries the time (ms, monotonic).
 *
 * Only what happens in new places, refused connections, and the times of responses lower the bound. A page that fails or takes long also
 * does so in a place that has worked, so no client drives the bound below what the device has answered at once.
 *
 * The events come first. Below them stands what raises the bound, then what lowers it: the rows of the two tables in docs/measure.md.
 */
export class Measure {
  readonly calm: Calm = { most: 0, answers: 0, firstAt: 0, lastAt: 0, target: '' }
  readonly #bound: Bound
  readonly #trials: Trials
  readonly #silence: Silence
  readonly #times = new UsualTimes()
  readonly #places = new DevicePlaces()
  readonly #held = new Held()
  readonly #outages = new Outages()
  #answers = 0
  #path = '' // of the last request that was sent
  #strikes = 0
  #struckAt = Number.NEGATIVE_INFINITY
  #suspicion: Suspicion | undefined
  /** The last response took long for its path: the device is overloaded, and does not hang. */
  #slow = false

  /** @param ceiling from before a restart */
  constructor(settings: BoundSettings, events: BoundEvents = {}, ceiling: Ceiling = UNKNOWN) {
    this.#bound = new Bound(settings, events, ceiling)
    this.#trials = new Trials(this.#bound)
    this.#silence = new Silence(this.#bound, this.#places, this.#times, this.#outages)
  }

  get limit(): number {
    return this.#bound.limit
  }

  /** The same number, for a reader who does not ask each time. */
  get places(): Limit {
    return this.#bound
  }

  /** Empty if the device has not shown that any number is too many. */
  get ceiling(): Ceiling {
    return this.#bound.ceiling
  }

  /** When the device last went away. */
  get outage(): Outage {
    return this.#outages.last
  }

  /** How many responses have come. */
  get answers(): number {
    return this.#answers + this.calm.answers
  }

  /** Whether the device has answered this many requests at once for a while. */
  carries(limit: number): boolean {
    this.#catchUp()
    return this.#held.level >= limit
  }

  /** Forgets the ceiling at the operator's command. One more place is given at a time, as before. */
  forget(): void {
    this.#bound.know(UNKNOWN, 'forgotten')
    this.#bound.stayBelow()
    this.#trials.tryMore()
    this.#calmDown()
  }

  /** The wall clock was set: the same ceiling has other times. */
  retime(ceiling: Ceiling): void {
    this.#bound.retime(ceiling)
  }

  /** No request gets a place before the next call of `share`: the other sidecars of the fleet still have all places. */
  wait(): void {
    this.#bound.wait()
    this.#calmDown()
  }

  /**
   * Takes the ceiling that the fleet has decided, at `now` (ms).
   *
   * @param ceiling with the share of this sidecar
   * @param isNew it is another decision than before
   */
  share(ceiling: Ceiling, isNew: boolean, now: number): void {
    this.#catchUp()
    const { limit, most } = this.#bound
    if (limit === 0) this.#bound.reachAnew(this.#held.level)
    if (isNew) this.#outages.struckElsewhere(now)
    this.#bound.know(ceiling, 'shared')
    if (this.#bound.most > most) this.#trials.tryMore()
    if (this.#bound.most < this.#bound.tried) this.#yieldPlaces(now)
    this.#calmDown()
  }

  /** A request that may change the device comes to it (1) or has left it (-1). */
  changing(by: 1 | -1, now: number): void {
    this.#outages.changing(by, now)
  }

  /** The last byte of a request was sent, while `level` requests had places, this one included. Returns its place. */
  sent(path: string, level: number, now: number): DevicePlace {
    this.#catchUp()
    this.#path = path
    if (level > this.#held.peak) this.#passes(level, now)
    if (level > this.#held.level) this.#places.note(level)
    return this.#places.take(path, level, this.#answers, now)
  }

  /** A connection is opened. `present`: how many are then at the device, closing ones included. */
  opens(present: number, now: number): void {
    this.#catchUp()
    this.#passes(present, now)
  }

  /** The head of the response has come. */
  answered(place: DevicePlace, now: number): void {
    const { path, sentAt, level } = place
    this.#catchUp()
    this.#answers += 1
    place.answered = true
    this.#silence.answered(now)
    this.#outages.answered(now)
    if (!place.worked) this.#works(place, now)
    if (place.peak > this.#held.level && sentAt >= this.#outages.struckAt) this.#reachFurther(place.peak, now)
    const time = now - sentAt
    const ratio = time <= FAST ? 1 : this.#times.ratio(path, time, this.#trials.learns(level))
    this.#slow = ratio > SLOW
    this.#compare(place, ratio, now)
    this.#calmDown()
  }

  /** The response did not come in time. */
  failed(place: DevicePlace, now: number): void {
    this.#catchUp()
    if (!place.worked) this.#strike('refused', now)
    this.#calmDown()
  }

  /** The request has ended, in any way. */
  left(place: DevicePlace): void {
    place.busy = false
    if (this.#suspicion?.place !== place) return
    this.#suspicion = undefined
    this.#calmDown()
  }

  /** The device dropped a new connection before a byte of a response, while `level` requests had places. */
  reset(level: number, now: number): void {
    this.#catchUp()
    this.#passes(level, now)
    this.#outages.goesAway(Math.min(level, this.limit, this.#held.level), now)
    this.#findWall(now)
    if (Math.min(level, this.limit) > this.#places.carried) this.#strike('refused', now)
    this.#calmDown()
  }

  /** The device refused a connection while `level` requests had places. A device that answers nothing meanwhile is only off. */
  refused(level: number, now: number): void {
    this.#catchUp()
    this.#refuse(level, now)
    this.#calmDown()
  }

  #refuse(level: number, now: number): void {
    this.#silence.refused(now)
    this.#outages.goesAway(Math.min(level, this.limit, this.#held.level), now)
    const since = this.#outages.refused(now)
    this.#doubt(level, now)
    this.#findWall(now)
    const { carried } = this.#places
    const { peak, peakAt } = this.#held
    const gone = since === 'nothing'
    if (gone && peak > carried && this.#outages.follows(peakAt, now) && carried > 0) {
      this.#setCeiling('refused', now)
      return
    }
    // The bound may have been lowered since these requests were sent.
    if (level <= 1 || (level > carried && this.limit <= carried)) return
    if (level > carried) {
      // The device dropped a connection in a new place, and since then refuses all.
      if (gone && now - this.#struckAt < ALIVE) this.#setCeiling('refused', now)
      else if (since === 'answers') this.#strike('refused', now)
    } else if (since === 'answers' && now - this.#bound.since > ALIVE) this.#halve(now)
  }

  /** Called several times a second while requests wait. `waitsSince`: since when there has always been one that waits (ms). */
  look(level: number, waitsSince: number, now: number): void {
    this.#catchUp()
    this.#judge(level, waitsSince, now)
    this.#calmDown()
  }

  #judge(level: number, waitsSince: number, now: number): void {
    if (this.limit === 0) return
    if (this.#bound.passCeiling(now)) this.#trials.tryMore()
    if (this.#suspicion !== undefined) {
      if (now >= this.#suspicion.until) this.#acquit(this.#suspicion, now)
      return
    }
    const newest = this.#places.waitingNew
    if (newest !== undefined && this.#hangs(newest, now)) this.#suspect(newest, now)
    else if (this.#silence.buries(now)) this.#retreat(now)
    else if (this.#silence.hidesRoom(level, waitsSince, this.#path, now)) this.#giveMore(now)
  }

  /** The device has answered a request in a new place. */
  #works(place: DevicePlace, now: number): void {
    if (this.#suspicion !== undefined) {
      this.#answersBesideFewer(this.#suspicion, now)
      return
    }
    this.#strikes = 0
    this.#places.works(place)
    this.#bound.works(place.level, this.#places.carried)
  }

  /** Counts at most the bound: requests above it were sent before it fell. */
  #passes(level: number, now: number): void {
    if (!this.#outages.isAway(now)) this.#held.passes(Math.min(level, this.limit), now)
  }

  /** Takes in what the requests were that told nothing. Each event that may change the bound begins with it. */
  #catchUp(): void {
    const { calm } = this
    const { answers, firstAt, lastAt, target } = calm
    if (target !== '') this.#path = pathOf(target)
    calm.target = ''
    if (answers === 0) return
    calm.answers = 0
    this.#answers += answers
    this.#slow = false
    this.#silence.answered(lastAt)
    this.#outages.answered(lastAt)
    // Requests that were sent before a strike do not count.
    if (firstAt - FAST >= this.#outages.struckAt) this.#reachFurther(1, lastAt, answers, firstAt)
  }

  /** Sets how many requests tell nothing from now on. Each event that may change that ends with it. */
  #calmDown(): void {
    const { level, peak } = this.#held
    const carries = Math.max(1, Math.min(level, peak))
    this.calm.most = this.#suspicion === undefined ? Math.min(this.#places.carried, this.#few, carries) : 0
  }

  /** A response tells about the bound only if more requests than this were at the device. */
  get #few(): number {
    const { limit, tried } = this.#bound
    return limit < tried ? limit - 1 : this.#trials.few
  }

  // What raises or lowers the bound.

  /** `keeps_up`, `latency`: a response shows whether more places bring more work, or whether fewer do the same. */
  #compare({ sentAt, level }: DevicePlace, ratio: number, now: number): void {
    const { limit, tried, since } = this.#bound
    const climbs = limit < tried
    if (sentAt < since || level <= this.#few || level > limit || this.#places.carried <= 0.75 * level) return
    if (climbs) this.#trials.approach(level, ratio, now)
    else {
      const drift = this.#trials.sample(level, ratio, now)
      if (drift !== undefined) this.#times.drift(drift)
    }
  }

  // What raises the bound.

  /** All places so far have worked at once, so one more is given. */
  #reachFurther(peak: number, now: number, count = 1, first: number = now): void {
    if (!this.#held.answered(Math.min(peak, this.limit), now, count, first)) return
    this.#bound.reachPast(this.#held.level)
    this.#bound.know(disproved(this.#bound.ceiling, this.#held.level), 'carried')
  }

  /** `silent`: requests wait, and no response comes. */
  #giveMore(now: number): void {
    this.#bound.reachOneMore()
    if (this.limit >= this.#bound.tried) this.#raise(2 * this.limit, 'silent', now, true)
  }

  /** `tried_again`: the request hangs beside fewer requests, too, so the number of places was not the cause. */
  #acquit({ limit }: Suspicion, now: number): void {
    this.#suspicion = undefined
    this.#places.regard(limit)
    this.#raise(limit, 'tried_again', now, true)
  }

  /**
   * `tried_again`: the request was answered beside fewer requests. That is a strike. Before the last strike, the bound returns to what it
   * was.
   */
  #answersBesideFewer({ limit }: Suspicion, now: number): void {
    this.#suspicion = undefined
    if (!this.#strike('hangs', now)) this.#raise(limit, 'tried_again', now, false)
  }

  /** @param doubles whether the bound then doubles while the device keeps up */
  #raise(limit: number, reason: Raise, now: number, doubles: boolean): void {
    this.#bound.raise(this.#bound.allowed(limit), reason, now)
    this.#bound.beginAnew(now)
    this.#trials.begin(doubles)
  }

  // What lowers the bound.

  /** `latency`: the bound was raised, and the device has been silent since then. */
  #retreat(now: number): void {
    if (this.#bound.tried === this.#bound.found) this.#lower(this.#places.carried, 'latency', now)
    else this.#trials.giveUp(now)
    this.#bound.beginAnew(now)
  }

  /** `refused`: the device refuses connections in places that have worked, and answers meanwhile. */
  #halve(now: number): void {
    this.#places.regard(0)
    this.#lower(this.#bound.found >> 1, 'refused', now)
  }

  /** `hangs`: lowers the bound, to see whether a request in a new place waits because of the others. */
  #suspect(place: DevicePlace, now: number): void {
    const until = now + SILENCE + PASSED_BY * (this.#times.of(this.#path) ?? 0)
    this.#suspicion = { place, until, limit: this.#bound.found }
    this.#lower(this.#places.carried, 'hangs', now)
  }

  #hangs({ sentAt, answers, path }: DevicePlace, now: number): boolean {
    if (this.#answers - answers < PASSED_BY || this.#places.carried === 0 || this.#slow) return false
    return now - sentAt >= Math.max(SILENCE, 4 * (this.#times.of(path) ?? 0))
  }

  /** `refused`, `hangs`: counts one sign that the device has no room for a new place. True at the third in a row, which sets a ceiling. */
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
    const suspected = reason === 'refused' && this.#isWall(now) ? limit : undefined
    this.#bound.know(guessed(this.#bound.ceiling, limit, now), reason)
    this.#outages.struck(suspected, now)
    this.#held.struck(limit)
    this.#bound.reachAnew(this.#held.level)
    this.#bound.stayBelow()
    this.#strikes = 0
    this.#suspicion = undefined
    this.#lower(limit, reason, now)
  }

  /** `shared`: the fleet leaves fewer places to this sidecar. */
  #yieldPlaces(now: number): void {
    const { most, found } = this.#bound
    this.#held.shared(most)
    this.#bound.reachAnew(this.#held.level)
    this.#places.regard(Math.min(this.#places.carried, most))
    this.#lower(Math.min(found, most), 'shared', now)
  }

  #lower(limit: number, reason: Lower, now: number): void {
    this.#bound.lower(this.#bound.allowed(limit), reason, now)
    this.#bound.beginAnew(now)
    this.#trials.begin(false)
  }

  // What breaks the device.

  /** Whether the number of requests is the only likely cause of what the device does now. */
  #isWall(now: number): boolean {
    const { level, peakAt } = this.#held
    return (
      !this.#outages.mayBeChanged(now) && level >= this.#places.carried && this.#outages.follows(peakAt, now)
    )
  }

  /** Sets a wall if passing the bound broke the device: it has answered nothing since the strike. */
  #findWall(now: number): void {
    const silence = Math.max(BROKEN, TIMES_BROKEN * (this.#times.of(this.#path) ?? 0))
    const limit = this.#outages.broke(silence, now)
    if (limit !== undefined) this.#bound.know(broken(this.#bound.ceiling, limit, now), 'refused')
  }

  /** Doubts the wall if the device is away with no more requests than it allows: their number is not the cause. */
  #doubt(level: number, now: number): void {
    const { wall } = this.#bound.ceiling
    if (wall === undefined || level > wall.limit || !this.#outages.isAnother(now)) return
    this.#bound.know(doubted(this.#bound.ceiling, now), 'doubted')
  }
}
