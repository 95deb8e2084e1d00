export type Deadline = ReturnType<typeof createDeadline>

/**
 * A deadline that restarts often. One timer is refreshed, because a new timer for each start costs too much.
 *
 * @param time ms
 * @param onPassed also called for a wait that is already over: waits are not cancelled, so the caller checks its state
 */
export function createDeadline(time: number, onPassed: () => void) {
  let timer: NodeJS.Timeout | undefined
  let closed = false
  return {
    /** Starts the full time again. */
    restart(): void {
      if (closed) return
      if (timer === undefined) timer = setTimeout(onPassed, time).unref()
      else timer.refresh()
    },
    close(): void {
      closed = true
      clearTimeout(timer)
    },
  }
}
