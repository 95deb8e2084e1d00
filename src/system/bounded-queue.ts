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
interface Bound {
  readonly places: number
}

interface QueueBounds {
  /** How many callers may be inside. */
  readonly inside: number | Bound
  readonly waiting: number
  /** How long a caller waits while its owner gets no place (ms). */
  readonly maxWait: number
}

const FULL = { kind: 'full' } as const
const LATE = { kind: 'late' } as const
const WITHDRAWN = { kind: 'withdrawn' } as const

/** A waiter is told why it gets no place; undefined: one is free for it. */
type Waiter = (refused?: Exclude<Entry, { kind: 'entered' }>) => void
/** The wait is over. */
const ENDED: Timer = { cancel() {} }

/** A queue for the same places, which gets no new callers any more. */
interface Predecessor {
  readonly inside: number
  readonly waiting: number
  passOn(to: { readonly fill: () => void }): void
}

/** How often it is looked at whether only callers that stay long come (ms). */
const QUIET = 1_000

/** The waits of one owner. Each place that it gets begins all of them anew: it is served, one after the other. */
interface Owner {
  waiting: number
  servedAt: number
}

/**
 * Limits how many callers are inside at the same time, how many wait to enter, and how long each waits.
 *
 * Some callers stay long (`isLong`). While others come, too, they get at most half of the places: the others would wait for all of them.
 *
 * @param before what is inside there is inside here, too
 */
export function createBoundedQueue(
  clock: Pick<Clock, 'after' | 'every' | 'monotonic'>,
  bounds: QueueBounds,
  before?: Predecessor,
) {
  const waiters = createFairQueue<Waiter>()
  const longWaiters = createFairQueue<Waiter>()
  const owners = new Map<string, Owner>()
  const most: Bound = typeof bounds.inside === 'number' ? { places: bounds.inside } : bounds.inside
  let inside = 0
  let longInside = 0
  /** Others than those that stay long have come: lately, and since the last look. */
  let othersCome = true
  let othersCame = true
  let looks: Timer | undefined
  /** It has the places that are left here. */
  let successor: { readonly fill: () => void } | undefined
  let earlier = before

  const hasHalf = (): boolean => longInside >= Math.max(1, most.places >> 1)

  /** Those that stay long go first: they are few, and get no more than half. */
  const next = (): Waiter | undefined =>
    (hasHalf() ? undefined : longWaiters.next()) ??
    waiters.next() ??
    (othersCome ? undefined : longWaiters.next())

  /**
   * Lets waiters in while places are free. Call it when there are more places. A place passes directly to the next waiter and is never
   * free in between, so `tryEnter` cannot overtake a waiter.
   */
  const fill = (): void => {
    if (earlier?.inside === 0 && earlier.waiting === 0) earlier = undefined
    while (inside + (earlier?.inside ?? 0) < most.places) {
      const waiter = next()
      if (waiter === undefined) return
      waiter()
    }
  }

  const occupy = (isLong: boolean): Leave => {
    inside += 1
    if (isLong) longInside += 1
    let left = false
    return () => {
      if (left) return
      left = true
      inside -= 1
      if (isLong) longInside -= 1
      if (waiters.size + longWaiters.size > 0) fill()
      if (successor !== undefined) successor.fill()
    }
  }

  /**
   * Enters now if a place is free. For the hot path: it creates no promise. It never overtakes a waiter.
   *
   * @param isLong the caller stays long
   */
  const tryEnter = (owner = '', isLong = false): Leave | undefined => {
    if (!isLong) othersCome = othersCame = true
    if (waiters.size + longWaiters.size > 0) fill()
    if (inside + (earlier?.inside ?? 0) >= most.places) return undefined
    if (isLong && othersCome && hasHalf()) return undefined
    if (owners.size > 0) served(owner)
    return occupy(isLong)
  }

  function served(owner: string): void {
    const waits = owners.get(owner)
    if (waits !== undefined) waits.servedAt = clock.monotonic()
  }

  /** Gives all places to those that stay long when no others come. */
  function look(): void {
    othersCome = othersCame
    othersCame = false
    fill()
    if (longWaiters.size > 0) return
    looks?.cancel()
    looks = undefined
  }

  const wait = (owner: string, onWait: OnWait | undefined, isLong: boolean): Promise<Entry> =>
    new Promise((resolve) => {
      const queue = isLong ? longWaiters : waiters
      const waits = owners.get(owner) ?? { waiting: 0, servedAt: Number.NEGATIVE_INFINITY }
      owners.set(owner, waits)
      waits.waiting += 1
      const since = clock.monotonic()
      const settle: Waiter = (refused) => {
        if (timer === ENDED) return
        queue.leave(owner, settle)
        timer.cancel()
        timer = ENDED
        waits.waiting -= 1
        if (waits.waiting === 0) owners.delete(owner)
        if (refused !== undefined) resolve(refused)
        else {
          waits.servedAt = clock.monotonic()
          resolve({ kind: 'entered', leave: occupy(isLong) })
        }
      }
      const end = (): void => {
        const left = Math.max(since, waits.servedAt) + bounds.maxWait - clock.monotonic()
        if (left > 0) timer = clock.after(left, end)
        else settle(LATE)
      }
      let timer = clock.after(bounds.maxWait, end)
      queue.join(owner, settle)
      if (isLong) looks ??= clock.every(Math.min(QUIET, bounds.maxWait / 4), look)
      onWait?.(() => settle(WITHDRAWN))
    })

  return {
    get inside(): number {
      return inside + (earlier?.inside ?? 0)
    },
    get waiting(): number {
      return waiters.size + longWaiters.size
    },
    /** How many callers may be inside now. */
    get places(): number {
      return most.places
    },
    fill,
    tryEnter,
    /** Another queue for the same places: what is inside here counts there, and the waiters here go first. */
    passOn(to: { readonly fill: () => void }): void {
      successor = to
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
      const leave = tryEnter(owner, isLong)
      if (leave !== undefined) return { kind: 'entered', leave }
      if (waiters.size + longWaiters.size >= bounds.waiting) {
        const displaced = longWaiters.makeRoomFor(owner) ?? waiters.makeRoomFor(owner)
        if (displaced === undefined) return FULL
        displaced(FULL)
      }
      return wait(owner, onWait, isLong)
    },
  }
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
      const own = queues.get(owner)?.size ?? 0
      let longest: readonly [string, Set<T>] | undefined
      for (const entry of queues) if (entry[1].size > (longest?.[1].size ?? own + 1)) longest = entry
      if (longest === undefined) return undefined
      const last = [...longest[1]].at(-1)
      if (last !== undefined) leave(longest[0], last)
      return last
    },
  }
  return fair
}
