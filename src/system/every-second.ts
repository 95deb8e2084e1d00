/** All listeners of the process. */
const listeners = new Set<() => void>()
let timer: NodeJS.Timeout | undefined

/**
 * Calls the listener once a second, and does not keep the process alive. One timer serves all, so an idle process wakes up once a
 * second, not once for each of them.
 */
export function everySecond(listener: () => void): { readonly close: () => void } {
  listeners.add(listener)
  timer ??= setInterval(() => {
    for (const each of listeners) callAlone(each)
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

/** Calls a listener. Its error does not stop the listeners behind it: it is thrown in a later turn, and the last error handler of the process logs it. */
function callAlone(listener: () => void): void {
  try {
    listener()
  } catch (error) {
    setImmediate(() => {
      throw error
    })
  }
}
