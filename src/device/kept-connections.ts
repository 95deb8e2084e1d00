import type { Clock } from '../system/clock.ts'

export type DelayedAcks = Readonly<ReturnType<typeof watchDelayedAcks>>
export type IdleMemory = Readonly<ReturnType<typeof createIdleMemory>>

/**
 * The time (ms) of a request with a delayed acknowledgement is between `SHORTEST_DELAYED` and `LONGEST`; a quick one takes at most `QUICK`.
 */
export const SHORTEST_DELAYED = 36
const [LONGEST, QUICK] = [90, 30]
/** `SUSPICIOUS` delayed requests in a row raise the suspicion. `CONFIRMING` quick ones in a row on new connections confirm it. */
const [SUSPICIOUS, CONFIRMING] = [8, 4]
/** How often new connections are tried at most. One slow request ends a try, and a stall of this process also makes a request slow. */
const TRIES = 3

/** How many requests in a row suffice to find such a device, the one that opens the kept connection included. */
export const SHOWN_WITHIN: number = 1 + SUSPICIOUS + CONFIRMING

/** @param took ms */
export function looksDelayed(took: number): boolean {
  return took >= SHORTEST_DELAYED && took <= LONGEST
}

/**
 * Finds a device whose kept connections cost 40 ms a request. Such a device writes head and body apart, with Nagle's algorithm, so its body
 * waits for the acknowledgement of its head. Linux delays that acknowledgement by 40 ms on a connection that has carried requests, but not
 * on a new one. This side cannot cure it: Node cannot set TCP_QUICKACK, and only bytes from here would carry the acknowledgement early.
 * When kept connections look delayed, new ones are tried.
 *
 * @param onFound called once, if the new ones are quick
 */
export function watchDelayedAcks(onFound: () => void) {
  let state: 'watching' | 'trying' | 'over' = 'watching'
  let inARow = 0
  let tries = 0
  /** The fewest busy connections during the suspicious requests. Beside fewer, a request may be quick only because the load is lower. */
  let least = 0
  /** When the last delayed request ended. A request that overlaps with it does not count: one stall delays both. */
  let endedAt = Number.NEGATIVE_INFINITY
  const acks = {
    /** The device is quicker with a connection for each request. */
    found: false,
    /** False: a request that took less than `SHORTEST_DELAYED` would change nothing. */
    suspected: false,
    /**
     * A connection carried a complete response.
     *
     * @param took from lending the connection to its return (ms), with the opening of a new one
     * @param level how many connections were busy
     * @param now ms, monotonic
     * @returns true if the connection must close
     */
    carried(took: number, reused: boolean, level: number, now: number): boolean {
      if (acks.found || state === 'over') return acks.found
      if (state === 'watching' && reused) {
        const isDelayed = looksDelayed(took)
        if (isDelayed && now - took < endedAt) return false
        if (isDelayed) endedAt = now
        inARow = isDelayed ? inARow + 1 : 0
        if (inARow === 1 || level < least) least = level
        if (inARow === SUSPICIOUS) {
          state = 'trying'
          tries += 1
        }
      } else if (state === 'trying' && level < least) return false
      else if (state === 'trying' && !reused) {
        inARow += 1
        if (took > QUICK) {
          state = tries < TRIES ? 'watching' : 'over'
          inARow = 0
        } else if (inARow === SUSPICIOUS + CONFIRMING) {
          acks.found = true
          onFound()
        }
      }
      acks.suspected = state !== 'over' && inARow > 0
      return state === 'trying'
    },
  }
  return acks
}

/** How many of the latest closes count, so that accidental ones, such as those of a restart, are forgotten. */
const MOST_REMEMBERED = 8
/**
 * A connection is trusted up to this part of the shortest idle time after which the device closed one. The rest is a margin for timers and
 * for bytes in flight.
 */
const SAFE_PART = 0.5
/** A device that closes sooner than this (ms) counts as one that does not keep connections. */
const SHORTEST_KEPT = 20
/** The trusted idle time (ms) for a request that cannot be repeated, until the first close. */
const UNPROVEN = 200
/** How often (ms) a repeatable request may try a connection that is not trusted. */
const TRIAL_INTERVAL = 5_000

/**
 * Learns after which idle time the device closes connections. Most firmware does not announce it (`Keep-Alive: timeout` is
 * rare). A request that is sent while the device closes the connection is lost. All times in ms.
 */
export function createIdleMemory(clock: Clock) {
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
    /** Every request may use a connection that was idle for less than this (ms). Its success teaches nothing. */
    safe: UNPROVEN,
    /**
     * Whether a connection that has been idle for this time may carry another request. A `repeatable` request is sent again if the
     * connection fails. So it may use an untrusted connection from time to time, to learn whether the device keeps connections longer now.
     */
    trusts(idle: number, repeatable: boolean): boolean {
      if (idle < memory.safe || (repeatable && closes.length === 0)) return true
      const now = clock.monotonic()
      if (!repeatable || now < nextTrial) return false
      nextTrial = now + TRIAL_INTERVAL
      return true
    },
    /** The device closed a connection after this idle time, or when the next request arrived. */
    closed(idle: number): void {
      closes.push(idle)
      learn()
      nextTrial = clock.monotonic() + TRIAL_INTERVAL
    },
    /** A connection carried a request after this idle time. */
    carried(idle: number): void {
      if (idle > proven) proven = idle
      if (idle > shortest) closes.shift()
      learn()
    },
    /** Forgets the closes: the device was away, and closed those connections for that reason. */
    startAnew(): void {
      closes.length = 0
      learn()
    },
  }
  return memory
}
