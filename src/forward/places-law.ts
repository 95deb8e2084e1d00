import { pathOf } from '../http/request-path.ts'
import {
  attemptAt,
  type Ceiling,
  type CeilingCause,
  disproved,
  doubted,
  guessed,
  mostUnder,
  type Strike,
  UNKNOWN,
} from './ceiling.ts'
import { type DevicePlace, DevicePlaces } from './device-places.ts'
import { ALIVE, type Outage, Signs } from './signs.ts'
import { FAST, UsualTimes } from './usual-times.ts'
import { FEW, PAYS, roundOf, Work } from './work.ts'

/**
 * What raises the number of places, and what lowers it: the rows of the two tables in docs/measure.md, and the labels of
 * `postern_upstream_limit_changes_total`.
 */
export const RAISES = ['keeps_up', 'silent', 'tried_again'] as const
export const LOWERS = ['latency', 'refused', 'hangs', 'shared'] as const
type Raise = (typeof RAISES)[number]
type Lower = (typeof LOWERS)[number]
export type PlacesReason = Raise | Lower

/**
 * What the law does now: the columns of the table in docs/measure.md.
 *
 * - `growing`: the places double up to `CAREFUL`, then one more is given at a time, while the device keeps up.
 * - `steady`: the places are those that were found.
 * - `trying`: more places, or half of them, for as long as it takes to compare the work of the device.
 * - `doubting`: a request in a new place hangs. The new places are taken back, to see whether it waits because of the others.
 */
export const STATES = ['growing', 'steady', 'trying', 'doubting'] as const
type State = (typeof STATES)[number]

/** The first number of places. */
const FIRST = 2
/** Up to this many places are given without proof. Above, and if a fleet shares the device, one more is given at a time. */
const CAREFUL = 4
/** A device that answers nothing for this long (ms) after a strike, and for `TIMES_BROKEN` times the usual time, is broken. */
const BROKEN = 100
const TIMES_BROKEN = 2
/** A request in a new place may hang if this many other responses came since it was sent. */
const PASSED_BY = 8
/** A response that takes more than this many times its usual time shows that the device is overloaded. */
const SLOW = 4
/** If responses take this many times their usual time, half as many requests are tried. */
const SLOWER = 1.5
/** On the way to more places, the work must stay above this share of the work before. Otherwise the way ends there. */
const ON_THE_WAY = 0.75
/** This many strikes in a row set a ceiling. */
const STRIKES = 3
/** If requests wait, and neither an answer nor a sign of overload comes, more places are given after this time (ms), and then at each look. */
const SILENCE = 500
/** The same time if all requests at the device are answered, and their responses go on. */
const ANSWERED_SILENCE = 200
/** From this many places on, twice as many may bury a device that has slowed down, so the first silence is longer. */
const MANY = 8
/** New places are taken back after a silence of this many times the usual time, and of at least `SHORTEST_BURIAL` (ms). */
const TIMES_OF_BURIAL = 8
const SHORTEST_BURIAL = 200
/** With fewer places than this, twice as many bury no device. */
const LEAST_BURIED = 4

interface LawSettings {
  readonly min: number
  readonly max: number
  /** Other sidecars have requests at the device, too: one place is given at a time from the start, because all of them grow. */
  readonly inFleet?: boolean
}

/** Called when the number of places changes, or the ceiling. */
interface LawEvents {
  readonly onChange?: (reason: PlacesReason) => void
  readonly onCeiling?: (cause: CeilingCause) => void
}

/**
 * The requests that tell nothing about the number of places: no more of them are at the device than it carries, one more place is free, and
 * it answers at once. Their round trips write here what is known of them, and the law reads it when it is asked for the next time.
 */
export interface Calm {
  /** Up to this many requests at the device tell nothing. */
  most: number
  /** How many answers have come since the law was last asked; when the first of them came, and the last (ms). */
  answers: number
  firstAt: number
  lastAt: number
  /** The target of the last request that was sent; empty if there was none. */
  target: string
}

/** A request in a new place seems to hang. If it is answered by `until` (ms) beside fewer requests, the places were too many. */
interface Doubt {
  readonly place: DevicePlace
  readonly until: number
  /** The places before they were taken back for that test. */
  readonly before: number
}

/**
 * Learns how many requests a device can take at once: its places. It knows no clock: each event carries the time (ms, monotonic).
 *
 * Only what happens in new places, refused connections, and the times of responses lower the number. A page that fails or takes long also
 * does so in a place that has worked, so no client drives the places below what the device has answered at once.
 *
 * The events come first. Below them stands what compares the work, what raises the number, what lowers it, and what is remembered.
 */
export class PlacesLaw {
  readonly calm: Calm = { most: 0, answers: 0, firstAt: 0, lastAt: 0, target: '' }
  /** The places now. A field and no getter, as `ceiling`: each request reads it several times. Only this class writes them. */
  places = 0
  /** Empty if the device has not shown that any number is too many. */
  ceiling: Ceiling
  #state: State = 'growing'
  /** The places that were found so far. */
  #found: number
  /** The places that are aimed at: `#found`, unless another number is tried. `places` comes to it place by place. */
  #aim = 0
  /** The most places that are given now: one more than the device is known to carry. */
  #reach: number
  /** The most places that a fleet leaves this sidecar. */
  #share = Number.POSITIVE_INFINITY
  /** When the places last changed. Only requests that were sent since then tell about them. */
  #since = 0
  /** The number of places above the ceiling that is tried; infinite if none is. */
  #passing = Number.POSITIVE_INFINITY
  #doubt: Doubt | undefined
  #strikes = 0
  #struckAt = Number.NEGATIVE_INFINITY
  #answers = 0
  /** The path of the last request that was sent. */
  #path = ''
  /** The last response took long for its path: the device is overloaded, and does not hang. */
  #slow = false
  /** Since when the device has been silent, and what that has caused. Afterwards it takes no place back before the next response. */
  #silentSince = 0
  #silence: 'raised' | 'lowered' | undefined
  readonly #settings: Required<LawSettings>
  readonly #events: LawEvents
  readonly #times = new UsualTimes()
  readonly #taken = new DevicePlaces()
  readonly #signs = new Signs()
  readonly #work = new Work()

  /** @param ceiling from before a restart */
  constructor(settings: LawSettings, events: LawEvents = {}, ceiling: Ceiling = UNKNOWN) {
    this.#settings = { inFleet: false, ...settings }
    this.#events = events
    this.ceiling = ceiling
    this.#reach = this.#reachAbove(0)
    this.#found = Math.min(Math.max(FIRST, settings.min), this.#most)
    this.#aimAt(this.#found, 0)
  }

  /** When the device last went away. */
  get outage(): Outage {
    return this.#signs.outage
  }

  /** How many responses have come. */
  get answers(): number {
    return this.#answers + this.calm.answers
  }

  /** Forgets the ceiling at the operator's command. One more place is given at a time, as before. */
  forget(): void {
    this.#know(UNKNOWN, 'forgotten')
    this.#passing = Number.POSITIVE_INFINITY
    this.#work.hurry()
    this.#calmDown()
  }

  /** The wall clock was set: the same ceiling has other times. */
  retime(ceiling: Ceiling): void {
    this.ceiling = ceiling
  }

  /**
   * Takes what the fleet has decided, at `now` (ms).
   *
   * @param places the most that it leaves this sidecar
   * @param ceiling the same object as before, if it has decided nothing new about that
   */
  share(places: number, ceiling: Ceiling, now: number): void {
    this.#catchUp()
    const before = this.#most
    this.#share = places
    if (ceiling !== this.ceiling) this.#signs.struckAt = now
    this.#know(ceiling, 'shared')
    if (this.#most > before) this.#work.hurry()
    if (this.#most < this.#aim) this.#yieldPlaces(now)
    this.#calmDown()
  }

  /** A request that may change the device comes to it (1) or has left it (-1). */
  changing(by: 1 | -1, now: number): void {
    this.#signs.changing(by, now)
  }

  /** The last byte of a request was sent, while `inside` requests had places, this one included. Returns its place. */
  sent(path: string, inside: number, now: number): DevicePlace {
    this.#catchUp()
    this.#path = path
    if (inside > this.#signs.peak) this.#come(inside, now)
    if (inside > this.#signs.carries) this.#taken.note(inside)
    return this.#taken.take(path, inside, this.#answers, now)
  }

  /** A connection is opened. `present`: how many are then at the device, closing ones included. */
  opens(present: number, now: number): void {
    this.#catchUp()
    this.#come(present, now)
  }

  /** The head of the response has come. */
  answered(place: DevicePlace, now: number): void {
    const { path, sentAt, inside } = place
    this.#catchUp()
    this.#answers += 1
    place.answered = true
    this.#endSilence(now)
    if (!place.worked) this.#works(place, now)
    if (place.peak > this.#signs.carries && sentAt >= this.#signs.struckAt)
      this.#reachFurther(place.peak, now)
    const time = now - sentAt
    const ratio = time <= FAST ? 1 : this.#times.ratio(path, time, this.#learns(inside))
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
    if (this.#doubt?.place !== place) return
    this.#doubtNoMore()
    this.#calmDown()
  }

  /** The device dropped a new connection before a byte of a response, while `inside` requests had places. */
  reset(inside: number, now: number): void {
    this.#catchUp()
    this.#come(inside, now)
    this.#signs.goesAway(Math.min(inside, this.places), now)
    this.#findWall(now)
    if (Math.min(inside, this.places) > this.#taken.worked) this.#strike('refused', now)
    this.#calmDown()
  }

  /** The device refused a connection while `inside` requests had places. A device that answers nothing meanwhile is only off. */
  refused(inside: number, now: number): void {
    this.#catchUp()
    // It is overloaded, and does not only keep silent.
    this.#silentSince = now
    this.#signs.goesAway(Math.min(inside, this.places), now)
    const since = this.#signs.refused(now)
    this.#doubtWall(inside, now)
    this.#findWall(now)
    this.#refuse(inside, since, now)
    this.#calmDown()
  }

  /** Called several times a second while requests wait. `waitsSince`: since when at least one request has waited at any time (ms). */
  look(inside: number, waitsSince: number, now: number): void {
    this.#catchUp()
    this.#judge(inside, waitsSince, now)
    this.#calmDown()
  }

  #judge(inside: number, waitsSince: number, now: number): void {
    this.#passCeiling(now)
    if (this.#doubt !== undefined) {
      // The request hangs beside fewer requests, too, so the number of places is not the cause.
      if (now >= this.#doubt.until) this.#stopDoubting(true, now)
      return
    }
    const newest = this.#taken.waiting.find(({ worked }) => !worked)
    if (newest !== undefined && this.#hangs(newest, now)) this.#startDoubting(newest, now)
    else if (this.#isBuried(now)) this.#retreat(now)
    else if (this.#hidesRoom(inside, waitsSince, now)) this.#giveMore(now)
  }

  /** Counts at most the places: requests above them were sent before the number fell. */
  #come(inside: number, now: number): void {
    this.#signs.came(Math.min(inside, this.places), now)
  }

  /** Takes in what the requests were that told nothing. Each event that may change the places begins with it. */
  #catchUp(): void {
    const { calm } = this
    const { answers, firstAt, lastAt, target } = calm
    if (target !== '') this.#path = pathOf(target)
    calm.target = ''
    if (answers === 0) return
    calm.answers = 0
    this.#answers += answers
    this.#slow = false
    this.#endSilence(lastAt)
    // Requests that were sent before a strike do not count.
    if (firstAt - FAST >= this.#signs.struckAt) this.#reachFurther(1, lastAt, answers, firstAt)
  }

  /** Sets how many requests tell nothing from now on. Each event that may change that ends with it. */
  #calmDown(): void {
    const { carries, peak } = this.#signs
    const carried = Math.max(1, Math.min(carries, peak))
    this.calm.most = this.#doubt === undefined ? Math.min(this.#taken.worked, this.#few, carried) : 0
  }

  // What compares the work.

  /** A response tells about the places only if more requests than this were at the device. */
  get #few(): number {
    if (this.places < this.#aim) return this.places - 1
    return this.#state === 'trying' ? this.#aim - 1 : this.#aim / 2
  }

  /** Whether the time of a response is a usual one: the places are those that were found, or so few were in use that it keeps up. */
  #learns(inside: number): boolean {
    return this.#state === 'growing' ? inside <= this.#aim / 2 : this.#state !== 'trying'
  }

  /** `keeps_up`, `latency`: a response shows whether more places bring more work, or whether fewer do the same. */
  #compare({ sentAt, inside }: DevicePlace, ratio: number, now: number): void {
    const { places } = this
    const isOfNow = sentAt >= this.#since && inside > this.#few && inside <= places
    if (this.#doubt !== undefined || !isOfNow || this.#taken.worked <= 0.75 * inside) return
    const isOnTheWay = places < this.#aim
    this.#work.add(inside, ratio, isOnTheWay)
    if (isOnTheWay) this.#goOn(inside, now)
    else if (this.#state === 'growing') this.#grow(now)
    else if (this.#state === 'steady') this.#rest(now)
    else if (this.#aim > this.#found) this.#tryMore(now)
    else this.#tryHalf(now)
  }

  /** The way to more places ends where the device does less work than before. */
  #goOn(inside: number, now: number): void {
    const work = this.#work
    if (!work.has(FEW) || work.known === 0 || work.now >= ON_THE_WAY * work.known) return
    if (this.#state === 'trying') this.#triedMore(now)
    else this.#settle(inside - 1, 'latency', now)
  }

  #grow(now: number): void {
    const work = this.#work
    if (!work.has(Math.min(FEW, Math.max(1, this.#aim >> 2)))) return
    const gain = work.known > 0 ? work.now / work.known : work.ratio > SLOWER ? 1 : 2
    if (gain < 1 + PAYS) {
      this.#settle(Math.round((this.#found / 2) * Math.min(Math.max(gain, 1), 2)), 'latency', now)
      return
    }
    work.known = work.now
    if (this.#aim >= this.#most) this.#state = 'steady'
    this.#find(Math.min(2 * this.#aim, this.#most), 'keeps_up', now)
  }

  #rest(now: number): void {
    const work = this.#work
    const found = this.#found
    if (!work.has(roundOf(this.#aim))) return
    const { up, down } = work.rest()
    // Exactly 1: no response took longer than `FAST`, for which no device is to blame.
    if (found > this.#least && work.ratio !== 1 && (down || work.ratio > SLOWER)) this.#try(found >> 1, now)
    else if (up && found < this.#most) this.#try(found + work.step, now)
    else work.restart()
  }

  #try(places: number, now: number): void {
    this.#state = 'trying'
    this.#aimAt(this.#allowed(places), now)
  }

  #tryMore(now: number): void {
    const aim = this.#aim
    const worth = this.#work.worth(this.#found, aim)
    if (this.#work.has(roundOf(aim)) || this.#work.isHopeless(aim, worth)) this.#triedMore(now)
  }

  /** @param pays whether more places bring enough work */
  #triedMore(now: number, pays = this.#work.now >= this.#work.worth(this.#found, this.#aim)): void {
    this.#work.triedMore(pays)
    if (pays) this.#work.known = this.#work.now
    this.#settle(pays ? this.#aim : this.#found, 'keeps_up', now)
  }

  #tryHalf(now: number): void {
    const work = this.#work
    const [aim, found] = [this.#aim, this.#found]
    if (!work.has(roundOf(aim))) return
    const enough = Math.max(aim, Math.min(Math.round((aim * work.known) / work.now), found))
    const pays = enough < 0.7 * found
    work.triedFewer(pays)
    // With half of the places, the device is as slow: for another reason than its load.
    if (!pays) this.#times.drift(found / work.known)
    this.#settle(pays ? enough : found, 'latency', now)
  }

  /** Ends an attempt, or the growth, with so many places. */
  #settle(places: number, reason: PlacesReason, now: number): void {
    this.#state = 'steady'
    this.#find(Math.max(this.#least, places), reason, now)
  }

  // What raises the number.

  /** All places so far have worked at once, so one more is given. */
  #reachFurther(peak: number, now: number, count = 1, first: number = now): void {
    if (!this.#signs.carriesMore(Math.min(peak, this.places), now, count, first)) return
    const { carries } = this.#signs
    // No place is taken back.
    this.#reachTo(Math.max(this.#reach, carries + 1))
    this.#know(disproved(this.ceiling, carries), 'carried')
  }

  /** Whether more places would bring answers: all are taken, and the device is silent for longer than the usual time explains. */
  #hidesRoom(inside: number, waitsSince: number, now: number): boolean {
    // A silence for which places were taken back is overload, and no reason to give them again.
    if (this.#silence === 'lowered' || inside < this.places || this.places >= this.#most) return false
    const many = inside >= MANY && this.#silence !== 'raised'
    // Long responses hold places, but no answer is due.
    const awaits = this.#taken.waiting.length > 0
    const longest = awaits ? Math.max(SILENCE, this.#times.silence(this.#path, many)) : ANSWERED_SILENCE
    if (now - Math.max(this.#silentSince, waitsSince) < longest) return false
    this.#silentSince = now - longest
    this.#silence = 'raised'
    return true
  }

  /** `silent`: requests wait, and no response comes. */
  #giveMore(now: number): void {
    if (this.places >= this.#reach) this.#reachTo(this.#reach + 1)
    if (this.places < this.#aim) return
    // Half of the places cannot be judged: long responses hold them.
    if (this.#aim < this.#found) this.#work.triedFewer(false)
    this.#begin('growing', 2 * this.places, 'silent', now)
  }

  /**
   * `tried_again`: the places are as many again as before the doubt.
   *
   * @param isAcquitted the number was not the cause, so all of them count as worked, and more are given while the device keeps up
   */
  #stopDoubting(isAcquitted: boolean, now: number): void {
    const before = this.#doubt?.before ?? this.#found
    this.#doubtNoMore()
    if (isAcquitted) this.#taken.regard(before)
    this.#begin(isAcquitted ? 'growing' : 'steady', before, 'tried_again', now)
  }

  /** The device has answered a request in a new place. */
  #works(place: DevicePlace, now: number): void {
    if (this.#doubt === undefined) {
      this.#strikes = 0
      this.#taken.works(place)
      this.#passed(place.inside)
    } else if (this.#strike('hangs', now)) this.#doubtNoMore()
    // It was answered beside fewer requests. Before the last strike, that may be by chance.
    else this.#stopDoubting(false, now)
  }

  // What lowers the number.

  /** Whether the device has been silent since it got more places, for much longer than usual. */
  #isBuried(now: number): boolean {
    const { waiting, worked } = this.#taken
    const before = Math.min(worked, this.#found)
    if (this.#silence !== undefined || before < LEAST_BURIED) return false
    if (Math.min(waiting.length, this.places) <= before) return false
    const silence = now - Math.max(this.#signs.answeredAt, ...waiting.map(({ sentAt }) => sentAt))
    // A path without a usual time may hang.
    const usual = Math.max(...waiting.map(({ path }) => this.#times.of(path) ?? Number.POSITIVE_INFINITY))
    return silence >= Math.max(SHORTEST_BURIAL, TIMES_OF_BURIAL * usual)
  }

  /** `latency`: there are more places, and the device has been silent since then. */
  #retreat(now: number): void {
    this.#silence = 'lowered'
    if (this.#aim === this.#found) this.#begin('steady', this.#taken.worked, 'latency', now)
    else {
      this.#triedMore(now, false)
      this.#since = now
    }
  }

  /** `refused`: the device refuses a connection, and `since` the last refusal it has answered or not. */
  #refuse(inside: number, since: 'answers' | 'nothing' | undefined, now: number): void {
    const { worked } = this.#taken
    const gone = since === 'nothing'
    const isNew = inside > worked
    if (gone && worked > 0 && this.#signs.peak > worked && this.#signs.brokeAtPeak(now))
      this.#setCeiling('refused', now)
    // The number may have been lowered since these requests were sent.
    else if (inside <= 1 || (isNew && this.places <= worked)) return
    // The device dropped a connection in a new place, and since then refuses all.
    else if (isNew && gone && now - this.#struckAt < ALIVE) this.#setCeiling('refused', now)
    else if (isNew && since === 'answers') this.#strike('refused', now)
    else if (!isNew && since === 'answers' && now - this.#since > ALIVE) {
      // Half of those that have worked.
      this.#taken.regard(0)
      this.#begin('steady', this.#found >> 1, 'refused', now)
    }
  }

  #hangs({ sentAt, answers, path }: DevicePlace, now: number): boolean {
    if (this.#answers - answers < PASSED_BY || this.#taken.worked === 0 || this.#slow) return false
    return now - sentAt >= Math.max(SILENCE, 4 * (this.#times.of(path) ?? 0))
  }

  /** `hangs`: takes the new places back, to see whether a request in one of them waits because of the others. */
  #startDoubting(place: DevicePlace, now: number): void {
    const until = now + SILENCE + PASSED_BY * (this.#times.of(this.#path) ?? 0)
    this.#doubt = { place, until, before: this.#found }
    this.#begin('doubting', this.#taken.worked, 'hangs', now)
  }

  #doubtNoMore(): void {
    this.#doubt = undefined
    if (this.#state === 'doubting') this.#state = 'steady'
  }

  /** `refused`, `hangs`: counts one sign that the device has no room for a new place. True at the third in a row, which sets a ceiling. */
  #strike(reason: Strike, now: number): boolean {
    if (this.#taken.worked === 0) return false
    this.#strikes += 1
    this.#struckAt = now
    const last = this.#strikes >= STRIKES
    if (last) this.#setCeiling(reason, now)
    return last
  }

  /** `shared`: the fleet leaves fewer places to this sidecar. */
  #yieldPlaces(now: number): void {
    const most = this.#most
    this.#signs.shared(most)
    this.#reachTo(this.#reachAbove(this.#signs.carries))
    this.#taken.regard(Math.min(this.#taken.worked, most))
    this.#begin('steady', Math.min(this.#found, most), 'shared', now)
  }

  // What is remembered.

  #setCeiling(reason: Strike, now: number): void {
    const places = Math.max(1, this.#taken.worked)
    const { carries } = this.#signs
    // The first time that it breaks beside a request that may change it, that request may be why.
    const isNumber = this.#passing === places + 1 || this.#signs.onlyReads(now)
    const broke = reason === 'refused' && isNumber && carries >= this.#taken.worked
    const suspected = broke && this.#signs.brokeAtPeak(now)
    this.#know(guessed(this.ceiling, places, now), reason)
    this.#signs.struck(places, suspected, now)
    this.#reachTo(this.#reachAbove(this.#signs.carries))
    this.#passing = Number.POSITIVE_INFINITY
    this.#strikes = 0
    this.#doubt = undefined
    this.#begin('steady', places, reason, now)
  }

  /** Sets a wall if one more place broke the device: it has answered nothing since the strike. */
  #findWall(now: number): void {
    const silence = Math.max(BROKEN, TIMES_BROKEN * (this.#times.of(this.#path) ?? 0))
    const places = this.#signs.broken(silence, now)
    if (places !== undefined) this.#know({ wall: { places } }, 'refused')
  }

  /** Doubts the wall if the device is away with no more requests than it allows: their number may not be the cause. */
  #doubtWall(inside: number, now: number): void {
    const { wall } = this.ceiling
    if (wall === undefined || inside > wall.places || !this.#signs.isAnotherOutage(now)) return
    this.#know(doubted(this.ceiling), 'doubted')
  }

  /** Allows one more place than the ceiling, if it is time for that. */
  #passCeiling(now: number): void {
    const next = attemptAt(this.ceiling, now)
    if (next === this.ceiling) return
    this.#know(next, 'attempt')
    this.#passing = mostUnder(next)
    this.#work.hurry()
  }

  /** The device has answered in a new place beside `inside` requests. If that is the place above the ceiling, the guess was wrong. */
  #passed(inside: number): void {
    if (this.#taken.worked < this.#passing || inside > this.#passing) return
    const { guess, wall } = this.ceiling
    if (guess !== undefined) this.#know(wall === undefined ? UNKNOWN : { wall }, 'carried')
  }

  #know(ceiling: Ceiling, cause: CeilingCause): void {
    if (ceiling === this.ceiling) return
    this.ceiling = ceiling
    this.#events.onCeiling?.(cause)
  }

  // The number itself.

  /** The least places: a fleet may leave this sidecar fewer than the configuration says. */
  get #least(): number {
    return Math.min(this.#settings.min, this.#share)
  }

  /** The most places that the configuration, the ceiling and the fleet allow. */
  get #most(): number {
    return Math.max(this.#least, Math.min(this.#settings.max, this.#share, mostUnder(this.ceiling)))
  }

  #allowed(places: number): number {
    return Math.max(this.#least, Math.min(places, this.#most))
  }

  #reachAbove(carries: number): number {
    return Math.max(this.#settings.inFleet ? 1 : CAREFUL, this.#least, carries + 1)
  }

  /** Begins anew with a number that was not found by the times of responses. */
  #begin(state: State, places: number, reason: PlacesReason, now: number): void {
    this.#state = state
    this.#find(this.#allowed(places), reason, now)
    this.#since = now
    this.#work.begin()
  }

  #find(places: number, reason: PlacesReason, now: number): void {
    const before = this.#found
    this.#found = places
    this.#aimAt(places, now)
    if (places !== before) this.#events.onChange?.(reason)
  }

  #aimAt(places: number, now: number): void {
    if (places !== this.#aim) this.#since = now
    this.#aim = places
    this.#reachTo(this.#reach)
    this.#work.restart()
  }

  #reachTo(reach: number): void {
    this.#reach = reach
    this.places = Math.min(this.#aim, reach)
  }

  #endSilence(now: number): void {
    this.#silentSince = now
    this.#silence = undefined
    this.#signs.answered(now)
  }
}
