/** The rules that tokens of this process and those of a shared store both obey. The scripts of `fleet/scripts.ts` follow them in Lua. */

/**
 * How many tokens one grant may hold. Above that it loses its own oldest ones, so a client that refreshes without end evicts its own
 * tokens first.
 *
 * @param capacity `tokens.capacity`
 */
export function shareOf(capacity: number): number {
  return Math.min(capacity, Math.max(8, Math.floor(capacity / 4)))
}

/** When a refresh token was exchanged, and until when its response is repeated: on one clock (ms). */
export interface Spent {
  readonly at: number
  /** By `refresh_grace` at that time. A longer one does not move it: by then a thief may have used the successor. */
  readonly graceEnd: number
}

/**
 * What the use of a spent refresh token means (C6): a `retry` gets the same response, `reuse` revokes the grant. At a clock that was
 * set back to before the exchange it is reuse: how long ago that was is unknown.
 *
 * @param grace `refresh_grace` now (ms): a shorter one holds at once
 */
export function spentMeans({ at, graceEnd }: Spent, now: number, grace: number): 'retry' | 'reuse' {
  return at <= now && now < Math.min(graceEnd, at + grace) ? 'retry' : 'reuse'
}
