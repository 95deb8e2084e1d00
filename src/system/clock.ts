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

/** Waits until `work` is done, at most `time` ms. */
export async function waitAtMost(time: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, time)
  })
  await Promise.race([work, over])
  clearTimeout(timer)
}
