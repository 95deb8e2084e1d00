/** Deadlines towards the device, in ms. */
export interface UpstreamDeadlines {
  readonly connect: number
  /** From the request to the response head. */
  readonly response: number
  /** Between two pieces of a body, in either direction. */
  readonly idle: number
}

/** A deadline that restarts often. One timer is refreshed, because a new timer for each start costs too much. */
export interface Deadline {
  /** Starts the full time again. */
  restart(): void
  close(): void
}

/**
 * @param time ms
 * @param onPassed also called for a wait that is already over: waits are not cancelled, so the caller checks its state
 */
export function createDeadline(time: number, onPassed: () => void): Deadline {
  let timer: NodeJS.Timeout | undefined
  let closed = false
  return {
    restart() {
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
