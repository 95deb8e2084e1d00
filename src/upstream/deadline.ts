import type { UpstreamFailure } from '../http/refusal.ts'

/** One timer for what an attempt at the device is waiting for. */
export interface Deadline {
  /** From now on `time` ms, whatever was set before; then `failure` is told. */
  set(time: number, failure: UpstreamFailure): void
  clear(): void
}

export function createDeadline(onPassed: (failure: UpstreamFailure) => void): Deadline {
  let timer: NodeJS.Timeout | undefined
  let current: UpstreamFailure | undefined
  let length = 0
  return {
    set(time, failure) {
      if (timer !== undefined && failure === current && time === length) {
        timer.refresh()
        return
      }
      clearTimeout(timer)
      current = failure
      length = time
      timer = setTimeout(() => onPassed(failure), time)
    },
    clear() {
      clearTimeout(timer)
      timer = undefined
    },
  }
}
