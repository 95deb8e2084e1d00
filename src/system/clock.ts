/**
 * Time, passed in. Windows and lifetimes run on `monotonic`, which no operator and no NTP step can move;
 * `wall` only labels them for people and for what outlives the process.
 */
export interface Clock {
  /** Milliseconds since an arbitrary start; never goes back. */
  readonly monotonic: () => number
  /** Milliseconds since the Unix epoch; may jump either way. */
  readonly wall: () => number
}

/**
 * The real time. `Date.now()` rounds down to the millisecond, and what is labelled with it must not be early, so the
 * wall clock names the end of the current millisecond.
 */
export const systemClock: Clock = { monotonic: () => performance.now(), wall: () => Date.now() + 1 }
