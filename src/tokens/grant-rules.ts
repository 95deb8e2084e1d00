// The rules of a grant (C6), for the tokens of this process and those of a shared store: functions of what a store holds. The stores know
// records, and none of this.

export type TokenKind = 'access' | 'refresh'

/** When a refresh token was exchanged, and until when its response is repeated: on one clock (ms). */
export interface Spent {
  readonly at: number
  /** By `refresh_grace` at that time. A longer one does not move it: by then a thief may have used the successor. */
  readonly graceEnd: number
}

/**
 * What the use of a spent refresh token means: a `retry` gets the same response, `reuse` revokes the grant. At a clock that was
 * set back to before the exchange it is reuse: how long ago that was is unknown.
 *
 * @param grace `refresh_grace` now (ms): a shorter one holds at once
 */
export function spentMeans({ at, graceEnd }: Spent, now: number, grace: number): 'retry' | 'reuse' {
  return at <= now && now < Math.min(graceEnd, at + grace) ? 'retry' : 'reuse'
}

/**
 * What a token means that a client presents for a refresh. `exchange`: it gets new tokens. `unknown`: there is no such refresh token; an
 * access token is none. A spent one: see `spentMeans`. After `reuse` two parties hold the token and one of them stole it. Which one is
 * unknown (RFC 9700 §4.14.2), so the grant is revoked.
 *
 * @param token as the store holds it; undefined if it holds none
 * @param grace as for `spentMeans`
 */
export function refreshMeans(
  token: { readonly kind: TokenKind; readonly spent: Spent | undefined } | undefined,
  now: number,
  grace: number,
): 'exchange' | 'retry' | 'reuse' | 'unknown' {
  if (token?.kind !== 'refresh') return 'unknown'
  return token.spent === undefined ? 'exchange' : spentMeans(token.spent, now, grace)
}

/**
 * How many tokens one grant may hold. Above that it loses its own oldest ones (`surplusOf`), so a client that refreshes without end evicts
 * its own tokens first.
 *
 * @param capacity `tokens.capacity`
 */
export function shareOf(capacity: number): number {
  return Math.min(capacity, Math.max(8, Math.floor(capacity / 4)))
}

/**
 * The tokens that a grant loses because it has `over` more than its share: the oldest ones, but never its live refresh token.
 *
 * @param oldest its tokens, the oldest first; `over` and one more are enough
 * @param live the refresh token that the grant needs
 */
export function surplusOf<T>(oldest: readonly T[], over: number, live: T | undefined): readonly T[] {
  if (over <= 0) return []
  const candidates = oldest.slice(0, over + 1)
  return candidates.filter((each) => each !== live).slice(0, over)
}

/** Lifetimes of tokens (ms). */
export interface Lifetimes {
  readonly accessLifetime: number
  readonly refreshLifetime: number
  /** How long a login lasts, however often it is refreshed; left out: `off`. */
  readonly grantLifetime?: number | 'off'
}

/**
 * When a login ends at the latest, on the clock of `granted` (ms). Its tokens end then, so all that asks whether a token is valid follows.
 *
 * @param granted when the password was given
 */
export function endOfGrant(granted: number, { grantLifetime }: Pick<Lifetimes, 'grantLifetime'>): number {
  return typeof grantLifetime === 'number' ? granted + grantLifetime : Number.POSITIVE_INFINITY
}

/** The lifetimes of tokens that a login gets `left` ms before its end. */
export function lifetimesWithin({ accessLifetime, refreshLifetime }: Lifetimes, left: number): Lifetimes {
  return {
    accessLifetime: Math.min(accessLifetime, left),
    refreshLifetime: Math.min(refreshLifetime, left),
  }
}

/**
 * Whether a login is too near to its end for a new access token of this lifetime (ms): `expires_in` would be 0. Many clients take 0 for a token
 * that never expires (`golang.org/x/oauth2` does), and would not log in again.
 */
export function endsTooSoon({ accessLifetime }: Pick<Lifetimes, 'accessLifetime'>): boolean {
  return accessLifetime < 1_000
}
