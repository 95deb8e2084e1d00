import { performance as loop } from 'node:perf_hooks'

/** The number of the present turn of the event loop. It changes after each wait for input. */
export const turnOfLoop = (): number => loop.nodeTiming.uvMetricsInfo.loopCount

/** A call that `afterTurn` has postponed. */
export type Postponed = NodeJS.Immediate

/** Calls `f` when this turn of the event loop has read all input. Called within such an `f`, it waits for the next turn. */
export function afterTurn(f: () => void): Postponed {
  return setImmediate(f)
}

/** Cancels a call of `afterTurn`. */
export function forgetTurn(postponed: Postponed | undefined): void {
  clearImmediate(postponed)
}

/** Resolves when this turn of the event loop has read all input. Long work awaits it, to let other work run. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

export interface Timer {
  cancel(): void
}

/**
 * Time as a dependency, so that tests control it. Windows and lifetimes use `monotonic`, which neither an operator nor NTP can set. `wall`
 * only labels times for people and for data that outlives the process. All times are in ms.
 */
export interface Clock {
  /** Time since an arbitrary start. It never decreases. */
  readonly monotonic: () => number
  /** Time since the Unix epoch. It may jump in both directions. */
  readonly wall: () => number
  /**
   * Calls `f` when `time` is over and the sockets are read. Without the read, a deadline could expire although its data has arrived: after
   * a stall (a busy or suspended machine) Node fires due timers before it reads the sockets. The timer does not keep the process alive.
   */
  readonly after: (time: number, f: () => void) => Timer
  /** Calls `f` every `time` ms, each time as `after` does. */
  readonly every: (time: number, f: () => void) => Timer
  /** Resolves when `time` is over or `signal` aborts. It keeps the process alive. */
  readonly pause: (time: number, signal?: AbortSignal) => Promise<void>
}

/** The longest delay (ms) of a Node timer. With a longer one Node fires it immediately. */
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

/** Resolves when the timer of `set` fires or `signal` aborts. Then neither the timer nor the listener is left. */
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
 * The real clock. `Date.now()` rounds down to the millisecond. A label must not be too early, so `wall` returns the end of the current
 * millisecond.
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

/** The largest error (ms) of a label after a step or drift of the wall clock. */
const TOLERANCE = 5

/**
 * Returns a function that gives the offset from monotonic to wall time (ms), to label monotonic times. The wall clock has whole
 * milliseconds, so the exact offset varies by one from call to call. The result stays the same until it is wrong by `TOLERANCE`, so the
 * label of an instant stays the same, too.
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

/** Like `pause`, but does not keep the process alive. */
export function rest(clock: Pick<Clock, 'after'>, time: number, signal?: AbortSignal): Promise<void> {
  return untilOver((over) => clock.after(time, over), signal)
}

/** A signal that aborts after `time` (ms). Disposal of the result ends the timer. */
export function abortAfter(
  clock: Pick<Clock, 'after'>,
  time: number,
): { readonly signal: AbortSignal } & Disposable {
  const over = new AbortController()
  const timer = clock.after(time, () => over.abort())
  return { signal: over.signal, [Symbol.dispose]: () => timer.cancel() }
}
