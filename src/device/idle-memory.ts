import type { Clock } from '../system/clock.ts'

/**
 * What the device has shown of when it gives up connections on which nothing happens. Most firmware never says
 * (`Keep-Alive: timeout` is rare), and a request that crosses its close is lost. All times in ms.
 */
export interface IdleMemory {
  /**
   * Whether a connection that has been idle for so long may carry another request. `repeatable`: it would be sent again
   * unseen if that goes wrong, and so may now and then try what is not trusted, to find out whether it still holds.
   */
  trusts(idle: number, repeatable: boolean): boolean
  /** The device has closed one that had been idle for so long, by itself or when the next request came. */
  closed(idle: number): void
  /** One that had been idle for so long has carried a request. */
  carried(idle: number): void
}

/** So many of the last closes count: one by chance, such as those of a restart, is forgotten after a while. */
const MOST_REMEMBERED = 8
/** Of the shortest idle time after which the device closed; the rest is for its clock, and for what is on the way. */
const SAFE_PART = 0.5
/** A device that closes sooner than this does not keep connections. */
const SHORTEST_KEPT = 20
/** What a request that cannot be repeated trusts a device that has shown nothing yet. */
const UNPROVEN = 200
/** So often may a repeatable request try a connection that is not trusted. */
const TRIAL_INTERVAL = 5_000

export function createIdleMemory(clock: Clock): IdleMemory {
  const closes: number[] = []
  let shortest = Number.POSITIVE_INFINITY
  /** The longest that a connection was idle and still good. */
  let proven = 0
  let nextTrial = 0

  function safe(repeatable: boolean): number {
    if (closes.length > 0) return shortest < SHORTEST_KEPT ? 0 : shortest * SAFE_PART
    return repeatable ? Number.POSITIVE_INFINITY : Math.max(UNPROVEN, proven * SAFE_PART)
  }

  function forgetOldest(): void {
    closes.shift()
    shortest = Math.min(...closes)
  }

  return {
    trusts(idle, repeatable) {
      if (idle < safe(repeatable)) return true
      const now = clock.monotonic()
      if (!repeatable || now < nextTrial) return false
      nextTrial = now + TRIAL_INTERVAL
      return true
    },
    closed(idle) {
      closes.push(idle)
      shortest = Math.min(shortest, idle)
      if (closes.length > MOST_REMEMBERED) forgetOldest()
      nextTrial = clock.monotonic() + TRIAL_INTERVAL
    },
    carried(idle) {
      if (idle > proven) proven = idle
      if (idle > shortest) forgetOldest()
    },
  }
}
