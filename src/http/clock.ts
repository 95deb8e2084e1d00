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
