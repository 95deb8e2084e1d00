import type { Clock } from './clock.ts'
import { MovingDeadline } from './moving-deadline.ts'

/** What may fall silent: a connection, or a tunnel. Times in ms of the clock. */
export interface Idling {
  /** When it was last active, `now` at the latest. Asked only when it is due, so activity itself costs no call. */
  lastActive(now: number): number
  /** It was idle for the time of its list, which it has left. */
  onIdle(): void
}

/** A place on the list; undefined: its member has left. */
interface Place {
  idling: Idling | undefined
  due: number
}

/**
 * Ends members that were idle for `time`, which is the same for all. They stand in the order in which they are due as far as it is known, and one
 * timer waits for the first. When it is due, what has arrived until then is read. A look at n members costs n log n.
 */
export class IdleList {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>
  readonly #time: number
  readonly #deadline: MovingDeadline
  /** The first is due first. */
  #places: Place[] = []
  readonly #placeOf = new Map<Idling, Place>()

  /** @param time ms without activity */
  constructor(clock: Pick<Clock, 'monotonic' | 'after'>, time: number) {
    this.#clock = clock
    this.#time = time
    this.#deadline = new MovingDeadline(clock, () => this.#look())
  }

  join(idling: Idling): void {
    const now = this.#clock.monotonic()
    const place = { idling, due: idling.lastActive(now) + this.#time }
    this.#placeOf.set(idling, place)
    this.#places.splice(this.#countUntil(place.due), 0, place)
    this.#waitForFirst(now)
  }

  /** Also for one that is not on the list. */
  leave(idling: Idling): void {
    const place = this.#placeOf.get(idling)
    if (place === undefined) return
    this.#placeOf.delete(idling)
    place.idling = undefined
    // At most half of the places are empty, so to leave costs little however many are on the list.
    if (this.#placeOf.size < this.#places.length / 2)
      this.#places = this.#places.filter((each) => each.idling !== undefined)
    if (this.#places.length === 0) this.#deadline.cancel()
  }

  /** How many places are due at this time. */
  #countUntil(time: number): number {
    let [from, to] = [0, this.#places.length]
    while (from < to) {
      const middle = (from + to) >> 1
      if ((this.#places[middle]?.due ?? 0) <= time) from = middle + 1
      else to = middle
    }
    return from
  }

  #waitForFirst(now: number): void {
    const [first] = this.#places
    if (first !== undefined) this.#deadline.move(first.due - now)
  }

  #look(): void {
    const now = this.#clock.monotonic()
    const due = this.#places.splice(0, this.#countUntil(now))
    let judged = 0
    try {
      for (const place of due) {
        judged += 1
        this.#judge(place, now)
      }
    } finally {
      // Those that were active, and after a bug in one those that were not judged.
      const left = due.filter((each, i) => each.idling !== undefined && (i >= judged || each.due > now))
      this.#places = [...left, ...this.#places].sort((one, other) => one.due - other.due)
      this.#waitForFirst(now)
    }
  }

  #judge(place: Place, now: number): void {
    const { idling } = place
    if (idling === undefined) return
    place.due = idling.lastActive(now) + this.#time
    if (place.due > now) return
    this.#placeOf.delete(idling)
    place.idling = undefined
    idling.onIdle()
  }
}
