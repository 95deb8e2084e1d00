/** A deadline that restarts often. One timer is refreshed, because a new timer for each start costs too much. */
export interface Patience {
  /** Starts the full time again. */
  begin(): void
  close(): void
}

/**
 * @param time ms
 * @param onPassed called also for a wait that is already over: waits are not cancelled, so the caller checks its state
 */
export function createPatience(time: number, onPassed: () => void): Patience {
  let timer: NodeJS.Timeout | undefined
  let closed = false
  return {
    begin() {
      if (closed) return
      if (timer === undefined) timer = setTimeout(onPassed, time).unref()
      else timer.refresh()
    },
    close() {
      closed = true
      clearTimeout(timer)
    },
  }
}
