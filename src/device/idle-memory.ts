import type { Clock } from '../system/clock.ts'

/**
 * Learns after which idle time the device closes connections. Most firmware does not announce it (`Keep-Alive: timeout` is
 * rare). A request that is sent while the device closes the connection is lost. All times in ms.
 */
export interface IdleMemory {
  /** Up to this idle time each request trusts a connection, and there is nothing to learn from it. */
  readonly safe: number
  /**
   * Whether a connection that has been idle for this time may carry another request. A `repeatable` request is sent again
   * if the connection fails, so from time to time it may use an untrusted connection, to learn whether the device keeps
   * connections that long again.
   */
  trusts(idle: number, repeatable: boolean): boolean
  /** The device closed a connection after this idle time, or when the next request arrived. */
  closed(idle: number): void
  /** A connection carried a request after this idle time. */
  carried(idle: number): void
  /** The device was away: the connections that it closed then were not idle for too long. */
  readonly startAnew: () => void
}

/** How many of the latest closes count, so that accidental ones, such as those of a restart, are forgotten. */
const MOST_REMEMBERED = 8
/**
 * A connection is trusted up to this part of the shortest idle time after which the device closed one. The rest is a margin for
 * timers and bytes in flight.
 */
const SAFE_PART = 0.5
/** A device that closes sooner than this (ms) counts as one that does not keep connections. */
const SHORTEST_KEPT = 20
/** The trusted idle time (ms) for a request that cannot be repeated, until the first close. */
const UNPROVEN = 200
/** How often (ms) a repeatable request may try a connection that is not trusted. */
const TRIAL_INTERVAL = 5_000

export function createIdleMemory(clock: Clock): IdleMemory {
  const closes: number[] = []
  let shortest = Number.POSITIVE_INFINITY
  /** The longest idle time after which a connection still carried a request. */
  let proven = 0
  let nextTrial = 0

  function learn(): void {
    if (closes.length > MOST_REMEMBERED) closes.shift()
    shortest = Math.min(...closes)
    if (closes.length === 0) memory.safe = Math.max(UNPROVEN, proven * SAFE_PART)
    else memory.safe = shortest < SHORTEST_KEPT ? 0 : shortest * SAFE_PART
  }

  const memory = {
    safe: UNPROVEN,
    trusts(idle: number, repeatable: boolean): boolean {
      if (idle < memory.safe || (repeatable && closes.length === 0)) return true
      const now = clock.monotonic()
      if (!repeatable || now < nextTrial) return false
      nextTrial = now + TRIAL_INTERVAL
      return true
    },
    closed(idle: number): void {
      closes.push(idle)
      learn()
      nextTrial = clock.monotonic() + TRIAL_INTERVAL
    },
    carried(idle: number): void {
      if (idle > proven) proven = idle
      if (idle > shortest) closes.shift()
      learn()
    },
    startAnew(): void {
      closes.length = 0
      learn()
    },
  }
  return memory
}
