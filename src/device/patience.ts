/** A wait of always the same length, which is begun so often that a timer for each would be too dear. */
export interface Patience {
  /** From now on the whole time, whatever has passed of it. */
  begin(): void
  close(): void
}

/** @param onPassed told also of a wait that has been over for long: nobody says when it ends. @param time in ms */
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
