import { uptime as uptimeOfMachine } from 'node:os'
import { performance as loop } from 'node:perf_hooks'

/**
 * Time as a dependency, so that tests can control it. Windows and lifetimes use `monotonic`, which neither an operator nor an NTP
 * step can move. `wall` only labels times for people and for data that outlives the process.
 */
export interface Clock {
  /** Milliseconds since an arbitrary start. It never decreases. */
  readonly monotonic: () => number
  /** Milliseconds since the Unix epoch. It may jump in both directions. */
  readonly wall: () => number
}

/**
 * The real clock. `Date.now()` rounds down to the millisecond, but a label must not be too early, so `wall` returns the end of
 * the current millisecond.
 */
export const systemClock: Clock = { monotonic: () => performance.now(), wall: () => Date.now() + 1 }

/** A number for the present turn of the event loop: another one after each wait for input. */
export const turnOfLoop = (): number => loop.nodeTiming.uvMetricsInfo.loopCount

/** How far a setting of the wall clock or its drift may make a label wrong (ms). */
const TOLERANCE = 5

/**
 * Reads what the wall clock is ahead of the monotonic one (ms), to label monotonic times. The wall clock has whole milliseconds, so
 * their difference varies by one from call to call; the result stays until it is wrong by `TOLERANCE`, so a label stays the same, too.
 */
export function createWallOffset(clock: Clock): () => number {
  let offset = Number.NaN
  return () => {
    const present = clock.wall() - clock.monotonic()
    if (!(Math.abs(present - offset) < TOLERANCE)) offset = present
    return offset
  }
}

/** A change of the wall clock from one look to the next (ms) that is a step. A clock that is slewed moves less in a second. */
export const STEP = 2000

/** Seconds since the machine started, those of a suspend included, which `monotonic` leaves out. */
export type Uptime = () => number

/**
 * Watches for steps of the wall clock: somebody, or NTP, has set it. Returns a function to call about once a second: by how much the
 * clock was set since the last call (ms); 0 if it was not. A drift is no step, nor is the time of a suspend.
 */
export function watchSteps(clock: Clock, uptime: Uptime = uptimeOfMachine): () => number {
  const { monotonic, wall } = clock
  const asleep = (): number => 1000 * uptime() - monotonic()
  let offset = wall() - monotonic()
  let slept = asleep()
  return () => {
    const present = wall() - monotonic()
    const moved = present - offset
    offset = present
    if (Math.abs(moved) < STEP) return 0
    const before = slept
    slept = asleep()
    const step = moved - (slept - before)
    return Math.abs(step) < STEP ? 0 : step
  }
}

/** Waits until `work` is done, at most `time` ms. */
export async function waitAtMost(time: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, time)
  })
  await Promise.race([work, over])
  clearTimeout(timer)
}

const listeners = new Set<() => void>()
let timer: NodeJS.Timeout | undefined

/**
 * Calls the listener once a second, and does not keep the process alive. One timer serves all, so an idle process wakes up once a
 * second, not once for each of them.
 */
export function everySecond(listener: () => void): { readonly close: () => void } {
  listeners.add(listener)
  timer ??= setInterval(() => {
    for (const each of listeners) each()
  }, 1_000).unref()
  return {
    close() {
      listeners.delete(listener)
      if (listeners.size > 0) return
      clearInterval(timer)
      timer = undefined
    },
  }
}
