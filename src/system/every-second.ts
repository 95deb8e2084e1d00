import { afterTurn, type Clock, type Timer } from './clock.ts'

interface Seconds {
  readonly listeners: Set<() => void>
  timer: Timer | undefined
}

/** The listeners of each clock: there is one clock in a process, and one for each test. */
const ofClock = new WeakMap<object, Seconds>()

/**
 * Calls the listener once a second, and does not keep the process alive. One timer serves all, so an idle process wakes up once a
 * second, not once for each of them.
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

/** Calls a listener. Its error does not stop the listeners behind it: it is thrown in a later turn, and the last error handler of the process logs it. */
function callAlone(listener: () => void): void {
  try {
    listener()
  } catch (error) {
    afterTurn(() => {
      throw error
    })
  }
}
