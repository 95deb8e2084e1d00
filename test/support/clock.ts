import { stat } from 'node:fs/promises'
import { type Clock, nextTurn, rest, systemClock, type Timer } from '../../src/system/clock.ts'

/** A clock that a test can move. */
export interface MovableClock extends Clock {
  /** Time passes: both clocks move forward. */
  advance(ms: number): Promise<void>
  /** Time passes at once, as for a process that was suspended: what is due meanwhile is called once, also what repeats. */
  leap(ms: number): Promise<void>
  /** The time of day is set: only the wall clock moves, in either direction. */
  jumpWall(ms: number): void
}

/** Starts above 0, so that code that forgets the start value fails. */
const START = 1_000_000

/**
 * Runs as the real clock does, with its timers: for the tests that the list of real time in this folder's README.md names. A test can move its two
 * clocks, and the timers do not move with them.
 */
export function realClock(): MovableClock {
  let ahead = 0
  let jumped = 0
  const move = async (ms: number): Promise<void> => {
    ahead += ms
  }
  return {
    ...systemClock,
    monotonic: () => START + systemClock.monotonic() + ahead,
    wall: () => systemClock.wall() + ahead + jumped,
    advance: move,
    leap: move,
    jumpWall(ms) {
      jumped += ms
    },
  }
}

interface Due {
  at: number
  readonly f: () => void
  /** Ms until it is due again; undefined: never. */
  readonly interval: number | undefined
}

/**
 * Moves only when a test moves it, and its timers with it: for a deadline, to the millisecond and in no time. `advance` calls what is due in order, with
 * a turn of the event loop before and behind each: `await` it.
 */
export function stillClock(): MovableClock & { readonly pending: number } {
  const now = Date.now()
  const timers = new Set<Due>()
  let elapsed = 0
  let jumped = 0

  function add(time: number, f: () => void, interval?: number): Timer {
    const due: Due = { at: elapsed + time, f, interval }
    timers.add(due)
    return { cancel: () => void timers.delete(due) }
  }

  function nextUntil(end: number): Due | undefined {
    let next: Due | undefined
    for (const each of timers) if (each.at <= end && (next === undefined || each.at < next.at)) next = each
    return next
  }

  function call(due: Due): void {
    if (due.interval === undefined) timers.delete(due)
    else due.at += due.interval
    due.f()
  }

  return {
    /** How many timers run. */
    get pending() {
      return timers.size
    },
    monotonic: () => START + elapsed,
    wall: () => now + elapsed + jumped,
    after: add,
    every: (time, f) => add(time, f, time),
    pause: (time, signal) => rest({ after: add }, time, signal),
    async leap(ms) {
      elapsed += ms
      const due = [...timers].filter(({ at }) => at <= elapsed).sort((one, other) => one.at - other.at)
      for (const each of due) {
        await nextTurn()
        if (!timers.has(each)) continue
        if (each.interval !== undefined) each.at = elapsed
        call(each)
      }
      await nextTurn()
    },
    async advance(ms) {
      const end = elapsed + ms
      for (let next = nextUntil(end); next !== undefined; next = nextUntil(end)) {
        elapsed = Math.max(elapsed, next.at)
        await nextTurn()
        // It may have been cancelled meanwhile.
        if (timers.has(next)) call(next)
        await nextTurn()
      }
      elapsed = end
      await nextTurn()
    },
    jumpWall(ms) {
      jumped += ms
    },
  }
}

/**
 * Resolves when a thread of this process has answered. Files are read and passwords are hashed by such threads, and packets pass meanwhile: a clock
 * that waits for one between two moves does not pass a deadline only because a busy machine gives the main thread more turns than the others.
 */
export async function nextThread(): Promise<void> {
  await stat('/')
}

/** Lets time pass, `step` ms after each answer of a thread, until `work` is done. */
export async function passUntil<T>(clock: MovableClock, work: Promise<T>, step = 10): Promise<T> {
  let over = false
  const end = (): void => {
    over = true
  }
  work.then(end, end)
  while (!over) {
    await clock.advance(step)
    await nextThread()
  }
  return work
}
