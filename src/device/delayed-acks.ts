/**
 * Finds a device whose kept connections cost 40 ms a request. It writes head and body apart, with Nagle's algorithm, so its body waits
 * for the acknowledgement of its head, which Linux delays by 40 ms on a connection that carries requests in turn, and not at once on a new
 * one. Nothing on our side cures that: Node cannot set TCP_QUICKACK, and only bytes that we send would carry the acknowledgement early.
 */
export interface DelayedAcks {
  /** The device is quicker with a connection for each request. */
  readonly found: boolean
  /** False: a request that took less than `SHORTEST_DELAYED` would change nothing. */
  readonly suspected: boolean
  /**
   * A connection carried a complete response.
   *
   * @param took from lending the connection to its return (ms), with opening it if it is new
   * @param level how many connections were busy
   * @param now ms, monotonic
   * @returns whether it must not be used again
   */
  carried(took: number, reused: boolean, level: number, now: number): boolean
}

/** A request with a delayed acknowledgement takes between these times (ms); a quick one at most `QUICK`. */
export const SHORTEST_DELAYED = 36
const [LONGEST, QUICK] = [90, 30]
/** So many requests in a row raise the suspicion; so many on new connections confirm it if each is quick. */
const [SUSPICIOUS, CONFIRMING] = [8, 4]

/** How many requests after each other show it. */
export const SHOWN_WITHIN: number = 1 + SUSPICIOUS + CONFIRMING

/** @param took ms */
export function looksDelayed(took: number): boolean {
  return took >= SHORTEST_DELAYED && took <= LONGEST
}

/** Tries new connections once, when kept ones look delayed. @param onFound called once, if the new ones are quick */
export function watchDelayedAcks(onFound: () => void): DelayedAcks {
  let state: 'watching' | 'trying' | 'over' = 'watching'
  let inARow = 0
  /** The fewest busy connections among those requests. With fewer, a loaded device is quick for another reason. */
  let least = 0
  /** The last of them ended. Those that overlap with it are none of their own: one stall delays all. */
  let endedAt = Number.NEGATIVE_INFINITY
  const acks = {
    found: false,
    suspected: false,
    carried(took: number, reused: boolean, level: number, now: number): boolean {
      if (acks.found || state === 'over') return acks.found
      if (state === 'watching' && reused) {
        const isDelayed = looksDelayed(took)
        if (isDelayed && now - took < endedAt) return false
        if (isDelayed) endedAt = now
        inARow = isDelayed ? inARow + 1 : 0
        if (inARow === 1 || level < least) least = level
        if (inARow === SUSPICIOUS) state = 'trying'
      } else if (state === 'trying' && level < least) return false
      else if (state === 'trying' && !reused) {
        if (took > QUICK) state = 'over'
        inARow += 1
        if (state === 'trying' && inARow === SUSPICIOUS + CONFIRMING) {
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
