import { afterTurn, type Clock, type Timer } from './clock.ts'

interface Seconds {
  readonly listeners: Set<() => void>
  timer: Timer | undefined
}

/** The listeners by clock. A process has one clock, and each test has its own. */
const ofClock = new WeakMap<object, Seconds>()

/**
 * Calls the listener once a second. Does not keep the process alive. All listeners of a clock share one timer, so an idle process wakes up
 * once a second, whatever their number.
 */
export function everySecond(
  clock: Pick<Clock, 'every'>,
  listener: () => void,
): { readonly close: () => void } {
  const seconds = ofClock.get(clock) ?? { listeners: new Set(), timer: undefined }
  const { listeners } = seconds
  ofClock.set(clock, seconds)
  listeners.add(listener)
  seconds.timer ??= clock.every(1_000, () => {
    for (const each of listeners) callAlone(each)
  })
  return {
    close() {
      listeners.delete(listener)
      if (listeners.size > 0) return
      seconds.timer?.cancel()
      seconds.timer = undefined
    },
  }
}

/** Calls a listener. Its error is thrown in a later turn, where the last error handler logs it, so the other listeners still run. */
function callAlone(listener: () => void): void {
  try {
    listener()
  } catch (error) {
    afterTurn(() => {
      throw error
    })
  }
}
