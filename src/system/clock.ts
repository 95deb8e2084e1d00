import { performance as loop } from 'node:perf_hooks'

/** A number for the present turn of the event loop: another one after each wait for input. */
export const turnOfLoop = (): number => loop.nodeTiming.uvMetricsInfo.loopCount

/** What `afterTurn` has put off. */
export type Postponed = NodeJS.Immediate

/** Calls `f` when this turn of the event loop has read all input. Within such a callback it puts `f` off by one turn more. */
export function afterTurn(f: () => void): Postponed {
  return setImmediate(f)
}

/** `f` is not called any more. */
export function forgetTurn(postponed: Postponed | undefined): void {
  clearImmediate(postponed)
}

/** Resolves when this turn of the event loop has read all input: long work gives way to other work. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** What a clock calls later. */
export interface Timer {
  /** Nothing is called any more. */
  cancel(): void
}

/**
 * Time as a dependency, so that tests can control it. Windows and lifetimes use `monotonic`, which neither an operator nor an NTP
 * step can move. `wall` only labels times for people and for data that outlives the process. All times are in ms.
 */
export interface Clock {
  /** Time since an arbitrary start. It never decreases. */
  readonly monotonic: () => number
  /** Time since the Unix epoch. It may jump in both directions. */
  readonly wall: () => number
  /**
   * Calls `f` when `time` is over and what has arrived until then is read: after a stall of this process (a busy machine, or a suspended one)
   * Node fires due timers before it reads the sockets. The timer alone does not keep the process alive.
   */
  readonly after: (time: number, f: () => void) => Timer
  /** Calls `f` every `time` ms, judged as `after`. */
  readonly every: (time: number, f: () => void) => Timer
  /** Resolves when `time` is over, or `signal` aborts. It keeps the process alive. */
  readonly pause: (time: number, signal?: AbortSignal) => Promise<void>
}

/** The longest time (ms) of a timer of Node. With a longer one it fires immediately. */
const LONGEST = 2 ** 31 - 1

function after(time: number, f: () => void): Timer {
  let judgement: Postponed | undefined
  const due = (): void => {
    judgement = afterTurn(f)
  }
  const timer = setTimeout(due, Math.min(time, LONGEST)).unref()
  return {
    cancel() {
      clearTimeout(timer)
      forgetTurn(judgement)
    },
  }
}

function every(time: number, f: () => void): Timer {
  let judgement: Postponed | undefined
  const due = (): void => {
    judgement = afterTurn(f)
  }
  const timer = setInterval(due, Math.min(time, LONGEST)).unref()
  return {
    cancel() {
      clearInterval(timer)
      forgetTurn(judgement)
    },
  }
}

/** Resolves when the timer that `set` sets calls its argument, or `signal` aborts. Then neither is left. */
function untilOver(set: (over: () => void) => Timer, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const over = (): void => {
      timer.cancel()
      signal?.removeEventListener('abort', over)
      resolve()
    }
    const timer = set(over)
    signal?.addEventListener('abort', over)
  })
}

/**
 * The real clock. `Date.now()` rounds down to the millisecond, but a label must not be too early, so `wall` returns the end of
 * the current millisecond.
 */
export const systemClock: Clock = {
  monotonic: () => performance.now(),
  wall: () => Date.now() + 1,
  after,
  every,
  pause: (time, signal) =>
    untilOver((over) => {
      const timer = setTimeout(over, Math.min(time, LONGEST))
      return { cancel: () => clearTimeout(timer) }
    }, signal),
}

/** How far a setting of the wall clock or its drift may make a label wrong (ms). */
const TOLERANCE = 5

/**
 * Reads what the wall clock is ahead of the monotonic one (ms), to label monotonic times. The wall clock has whole milliseconds, so
 * their difference varies by one from call to call; the result stays until it is wrong by `TOLERANCE`, so a label stays the same, too.
 */
export function createWallOffset(clock: Pick<Clock, 'monotonic' | 'wall'>): () => number {
  let offset = Number.NaN
  return () => {
    const present = clock.wall() - clock.monotonic()
    if (!(Math.abs(present - offset) < TOLERANCE)) offset = present
    return offset
  }
}

/** Waits until `work` is done, at most `time` ms. */
export async function waitAtMost(
  clock: Pick<Clock, 'pause'>,
  time: number,
  work: Promise<unknown>,
): Promise<void> {
  const over = new AbortController()
  try {
    await Promise.race([work, clock.pause(time, over.signal)])
  } finally {
    over.abort()
  }
}

/** As `pause`, but does not keep the process alive. */
export function rest(clock: Pick<Clock, 'after'>, time: number, signal?: AbortSignal): Promise<void> {
  return untilOver((over) => clock.after(time, over), signal)
}

/** A signal that aborts when `time` is over. Its timer ends with `cancel`. */
export function abortAfter(
  clock: Pick<Clock, 'after'>,
  time: number,
): { readonly signal: AbortSignal } & Timer {
  const over = new AbortController()
  const timer = clock.after(time, () => over.abort())
  return { signal: over.signal, cancel: () => timer.cancel() }
}
