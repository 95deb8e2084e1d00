import type { Clock, Timer } from './clock.ts'

/** Gives the place back. Only the first call has an effect. */
export type Leave = () => void

/**
 * The result of `enter`. `full`: the queue had no room for another waiter. `late`: its owner got no place within `maxWait`.
 * `withdrawn`: the caller stopped waiting.
 */
export type Entry =
  | { readonly kind: 'entered'; readonly leave: Leave }
  | { readonly kind: 'full' }
  | { readonly kind: 'late' }
  | { readonly kind: 'withdrawn' }

type OnWait = (withdraw: () => void) => void

export type BoundedQueue = ReturnType<typeof createBoundedQueue>

/** A number that may change. If it falls below the places in use, no caller enters until enough have left. */
export interface Bound {
  readonly places: number
}

interface WaitBounds {
  /** How long a caller waits while its owner gets no place (ms). */
  readonly maxWait: number
  /** A caller that found no free place has waited for `time` (ms), and its wait is over. */
  readonly onWaited?: OnWaited | undefined
}

interface QueueBounds extends WaitBounds {
  /** How many callers may be inside. */
  readonly inside: number | Bound
  readonly waiting: number
}

export type OnWaited = (time: number, end: Entry['kind']) => void

const FULL = { kind: 'full' } as const
const LATE = { kind: 'late' } as const
const WITHDRAWN = { kind: 'withdrawn' } as const

/** A waiter is told why it gets no place; undefined: one is free for it. */
type Waiter = (refused?: Exclude<Entry, { kind: 'entered' }>) => void
/** The wait is over. */
const ENDED: Timer = { cancel() {} }

type QueueClock = Pick<Clock, 'after' | 'every' | 'monotonic'>

/** How often it is looked at whether only callers that stay long come (ms). */
const QUIET = 1_000

/** The waits of one owner. Each place that it gets begins all of them anew: it is served, one after the other. */
interface Owner {
  waiting: number
  servedAt: number
}

/** Who is inside and who waits, of all queues for the same places. */
export class Line {
  /** How many may be inside: as the queue that is in effect says. */
  most: Bound
  inside = 0
  /** How many have entered so far. */
  entered = 0
  readonly #clock: QueueClock
  readonly #waiters = createFairQueue<Waiter>()
  readonly #longWaiters = createFairQueue<Waiter>()
  /** Those that wait. */
  readonly #owners = new Map<string, Owner>()
  #longInside = 0
  /** How many others have entered since the last one that stays long. */
  #othersSince = 0
  /** Others than those that stay long have come: lately, and since the last look. */
  #othersCome = true
  #cameSinceLook = true
  #looks: Timer | undefined

  constructor(clock: QueueClock, most: Bound) {
    this.#clock = clock
    this.most = most
  }

  get waiting(): number {
    return this.#waiters.size + this.#longWaiters.size
  }

  readonly fill = (): void => {
    while (this.inside < this.most.places) {
      const waiter = this.#next()
      if (waiter === undefined) return
      waiter()
    }
  }

  readonly tryEnter = (owner = '', isLong = false): Leave | undefined => {
    if (!isLong) this.#othersCome = this.#cameSinceLook = true
    if (this.#owners.size > 0) this.fill()
    if (this.inside >= this.most.places) return undefined
    if (isLong && this.#othersCome && this.#hasHalf()) return undefined
    if (this.#owners.size > 0) this.#served(owner)
    return this.#occupy(isLong)
  }

  /** As that of a fair queue, for the waiters of both kinds together. */
  makeRoomFor(owner: string): Waiter | undefined {
    const longest = ownerWithMost(this.#owners, ({ waiting }) => waiting, owner)
    if (longest === undefined) return undefined
    return this.#waiters.takeLast(longest) ?? this.#longWaiters.takeLast(longest)
  }

  wait(
    owner: string,
    { maxWait, onWaited }: WaitBounds,
    onWait: OnWait | undefined,
    isLong: boolean,
  ): Promise<Entry> {
    const clock = this.#clock
    return new Promise((resolve) => {
      const queue = isLong ? this.#longWaiters : this.#waiters
      const waits = this.#owners.get(owner) ?? { waiting: 0, servedAt: Number.NEGATIVE_INFINITY }
      this.#owners.set(owner, waits)
      waits.waiting += 1
      const since = clock.monotonic()
      const settle: Waiter = (refused) => {
        if (timer === ENDED) return
        queue.leave(owner, settle)
        timer.cancel()
        timer = ENDED
        waits.waiting -= 1
        if (waits.waiting === 0) this.#owners.delete(owner)
        onWaited?.(clock.monotonic() - since, refused?.kind ?? 'entered')
        if (refused !== undefined) resolve(refused)
        else {
          waits.servedAt = clock.monotonic()
          resolve({ kind: 'entered', leave: this.#occupy(isLong) })
        }
      }
      const end = (): void => {
        const left = Math.max(since, waits.servedAt) + maxWait - clock.monotonic()
        if (left > 0) timer = clock.after(left, end)
        else settle(LATE)
      }
      let timer = clock.after(maxWait, end)
      queue.join(owner, settle)
      if (isLong) this.#looks ??= clock.every(Math.min(QUIET, maxWait / 4), () => this.#look())
      onWait?.(() => settle(WITHDRAWN))
    })
  }

  #hasHalf(): boolean {
    return this.#longInside >= Math.max(1, this.most.places >> 1)
  }

  /** Half of a single place is all of it, so those that stay long wait there until each other owner has had its turn. */
  #isTurnOfOthers(): boolean {
    return this.most.places === 1 && this.#othersSince < this.#waiters.owners
  }

  /** Those that stay long go first: they are few, and get no more than half. */
  #next(): Waiter | undefined {
    return (
      (this.#hasHalf() || this.#isTurnOfOthers() ? undefined : this.#longWaiters.next()) ??
      this.#waiters.next() ??
      (this.#othersCome ? undefined : this.#longWaiters.next())
    )
  }

  #occupy(isLong: boolean): Leave {
    this.inside += 1
    this.entered += 1
    if (isLong) {
      this.#longInside += 1
      this.#othersSince = 0
    } else {
      this.#othersSince += 1
      this.#cameSinceLook = true
    }
    let left = false
    return () => {
      if (left) return
      left = true
      this.inside -= 1
      if (isLong) this.#longInside -= 1
      if (this.#owners.size > 0) this.fill()
    }
  }

  #served(owner: string): void {
    const waits = this.#owners.get(owner)
    if (waits !== undefined) waits.servedAt = this.#clock.monotonic()
  }

  /** Gives all places to those that stay long when no others come. One that waits, or has just got its place, has come. */
  #look(): void {
    this.#othersCome = this.#cameSinceLook || this.#waiters.size > 0
    this.#cameSinceLook = false
    this.fill()
    if (this.#longWaiters.size > 0) return
    this.#looks?.cancel()
    this.#looks = undefined
  }
}

/**
 * Limits how many callers are inside at the same time, how many wait to enter, and how long each waits.
 *
 * Some callers stay long (`isLong`). While others come, too, they get at most half of the places: the others would wait for all of them.
 *
 * @param before a queue for the same places. Both have one line; the bound of the new queue holds from `before.passOn` on
 */
export function createBoundedQueue(clock: QueueClock, bounds: QueueBounds, before?: { readonly line: Line }) {
  const most: Bound = typeof bounds.inside === 'number' ? { places: bounds.inside } : bounds.inside
  const line = before?.line ?? new Line(clock, most)

  return {
    line,
    most,
    get inside(): number {
      return line.inside
    },
    get waiting(): number {
      return line.waiting
    },
    /** How many have entered so far. */
    get entered(): number {
      return line.entered
    },
    /** How many callers may be inside now. */
    get places(): number {
      return most.places
    },
    /**
     * Lets waiters in while places are free. Call it when there are more places. A place passes directly to the next waiter and is never
     * free in between, so `tryEnter` cannot overtake a waiter.
     */
    fill: line.fill,
    /**
     * Enters now if a place is free. For the hot path: it creates no promise. It never overtakes a waiter.
     *
     * @param isLong the caller stays long
     */
    tryEnter: line.tryEnter,
    /** The bound of `next`, a queue for the same places, holds from now on. */
    passOn(next: { readonly most: Bound }): void {
      line.most = next.most
      line.fill()
    },
    /**
     * Enters as soon as a place is free. Owners are served in turn (round robin), the waiters of one owner in order of arrival. If the
     * queue is full and the new waiter's owner would still have fewer waiters than the owner with most, the last waiter of that owner
     * is displaced with `full`.
     *
     * @param onWait called when the wait begins. Its argument `withdraw` ends the wait; later calls do nothing. (An `AbortSignal` for
     *   each waiter would cost more time than the whole rest of the wait.)
     * @param isLong the caller stays long
     */
    async enter(owner = '', onWait?: OnWait, isLong = false): Promise<Entry> {
      const leave = line.tryEnter(owner, isLong)
      if (leave !== undefined) return { kind: 'entered', leave }
      if (line.waiting >= bounds.waiting) {
        const displaced = line.makeRoomFor(owner)
        if (displaced === undefined) {
          bounds.onWaited?.(0, 'full')
          return FULL
        }
        displaced(FULL)
      }
      return line.wait(owner, bounds, onWait, isLong)
    },
  }
}

/** The owner with most waiters, if it has more than `owner` would have with one more. */
function ownerWithMost<T>(
  owners: ReadonlyMap<string, T>,
  waitersOf: (each: T) => number,
  owner: string,
): string | undefined {
  const own = owners.get(owner)
  let most = (own === undefined ? 0 : waitersOf(own)) + 1
  let found: string | undefined
  for (const [name, each] of owners) {
    if (waitersOf(each) <= most) continue
    most = waitersOf(each)
    found = name
  }
  return found
}

/** A queue that serves its owners in turn (round robin), so that an owner with many waiters does not delay the others. */
export function createFairQueue<T>() {
  /** The owners in the order of service, each with its waiters in the order of arrival. */
  const queues = new Map<string, Set<T>>()
  /** Removes a waiter at any position. Does nothing if it has left already. */
  function leave(owner: string, waiter: T): void {
    const queue = queues.get(owner)
    if (queue?.delete(waiter) !== true) return
    fair.size -= 1
    if (queue.size === 0) queues.delete(owner)
  }

  const fair = {
    /** The number of waiters of all owners. */
    size: 0,
    /** The number of owners that wait. */
    get owners(): number {
      return queues.size
    },
    join(owner: string, waiter: T): void {
      const queue = queues.get(owner) ?? new Set()
      queues.set(owner, queue.add(waiter))
      fair.size += 1
    },
    leave,
    /** Removes and returns the waiter to serve next. */
    next(): T | undefined {
      for (const [owner, queue] of queues) {
        const [first] = queue
        if (first === undefined) continue
        leave(owner, first)
        // The owner moves behind all others.
        if (queues.delete(owner)) queues.set(owner, queue)
        return first
      }
      return undefined
    },
    /**
     * Makes room for one more waiter of `owner`: removes and returns the last waiter of the owner with most waiters. Undefined if no
     * owner has more waiters than `owner` would have with the new one.
     */
    makeRoomFor(owner: string): T | undefined {
      const longest = ownerWithMost(queues, ({ size }) => size, owner)
      return longest === undefined ? undefined : fair.takeLast(longest)
    },
    /** Removes and returns the last waiter of an owner; undefined if it has none. */
    takeLast(owner: string): T | undefined {
      const last = [...(queues.get(owner) ?? [])].at(-1)
      if (last !== undefined) leave(owner, last)
      return last
    },
  }
  return fair
}
