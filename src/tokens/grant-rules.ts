// The rules of a grant (C6). Each function is pure: it gets the grant, the time and the policy, and changes nothing.
//
// - What a presented token is worth, its exchange, and lifetimes: `token-store.ts` asks here, at every backend.
// - The share of a grant: `grant-table.ts` and `fleet/shared-backend.ts`, when they add tokens.
// - The end of tokens that a reload, or a clock that is set back, leaves too long: `grant-table.ts`, `journal-records.ts`,
//   `fleet/copies.ts`, `fleet/upkeep.ts`.
//
// A backend chooses itself which grant it evicts when it is full: the least recently used one (`grant-table.ts`), or the first to expire
// (`SET_GRANT` in `fleet/scripts.ts`).

export type TokenKind = 'access' | 'refresh'

/** When a refresh token was spent, and when its grace ends: until then a retry gets the same response. Both on one clock (ms). */
export interface Spent {
  readonly at: number
  /** Set by the `refresh_grace` at `at`. A reload with a longer one does not move it: a thief may have used the successor meanwhile. */
  readonly graceEnd: number
}

/**
 * Classifies the use of a spent refresh token: a `retry` gets the same response, `reuse` revokes the grant. If the clock was set back to
 * before the exchange, the age of the exchange is unknown, so the use is `reuse`.
 *
 * @param grace the present `refresh_grace` (ms): a reload that shortens it takes effect at once
 */
export function classifySpent({ at, graceEnd }: Spent, now: number, grace: number): 'retry' | 'reuse' {
  return at <= now && now < Math.min(graceEnd, at + grace) ? 'retry' : 'reuse'
}

/**
 * Classifies a token that a client presents for a refresh. `exchange`: the client gets new tokens. `unknown`: the store has no such
 * refresh token; an access token is `unknown`, too. A spent token: see `classifySpent`. `reuse` shows that two parties hold the token, and
 * not which of them stole it (RFC 9700 §4.14.2), so the grant is revoked.
 *
 * @param token as the store holds it; undefined if the store has no such token
 * @param grace as for `classifySpent`
 */
export function classifyRefresh(
  token: { readonly kind: TokenKind; readonly spent: Spent | undefined } | undefined,
  now: number,
  grace: number,
): 'exchange' | 'retry' | 'reuse' | 'unknown' {
  if (token?.kind !== 'refresh') return 'unknown'
  return token.spent === undefined ? 'exchange' : classifySpent(token.spent, now, grace)
}

/**
 * The most tokens of one grant. A grant above its share loses its own oldest tokens (`surplusOf`), so a client that refreshes without end
 * evicts its own tokens first.
 *
 * @param capacity `tokens.capacity`
 */
export function shareOf(capacity: number): number {
  return Math.min(capacity, Math.max(8, Math.floor(capacity / 4)))
}

/**
 * The tokens that a grant loses because it has `over` more than its share: the oldest ones, but never its live refresh token.
 *
 * @param oldest tokens of the grant, the oldest first; the first `over + 1` are enough
 * @param live the live refresh token of the grant
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
  /** How long a login lasts, however often it is refreshed; default: `off`. */
  readonly grantLifetime?: number | 'off'
}

/** The default of `TokenPolicy.issued`. Bounded, because each issued token is a long-lived secret that its owner may forget. */
export const MOST_ISSUED = 100

export interface TokenPolicy extends Lifetimes {
  /** The maximum number of tokens, both kinds together. */
  readonly capacity: number
  /** The maximum number of issued grants (`Handout`), which do not count towards `capacity`; default: `MOST_ISSUED`. */
  readonly issued?: number
  readonly rotateRefresh: boolean
  /** How long a retry with a spent refresh token gets the same response (ms). */
  readonly refreshGrace: number
  /** How long this sidecar accepts its copies of tokens while it hears nothing from a shared store (ms); default: 0. */
  readonly offlineGrace?: number
}

/**
 * The latest end of a login, on the clock of `granted` (ms); infinite if `grantLifetime` is `off`. No token of the login is valid longer,
 * so a check of a token is enough.
 *
 * @param granted the time of the login
 */
export function endOfGrant(granted: number, { grantLifetime }: Pick<Lifetimes, 'grantLifetime'>): number {
  return typeof grantLifetime === 'number' ? granted + grantLifetime : Number.POSITIVE_INFINITY
}

/** The lifetime of a token of a login (ms). */
export function lifetimeOf(kind: TokenKind, { accessLifetime, refreshLifetime }: Lifetimes): number {
  return kind === 'access' ? accessLifetime : refreshLifetime
}

/**
 * The latest end of a token that a backend holds (ms, on the clock of `now`): the end of its login. A login that is later than `now` shows that
 * the clock was set back, so the age of the token is unknown: it gets its lifetime from now on. Infinite without either bound.
 *
 * @param granted the time of the login
 * @param lifetime of an issued token, whose grant has no other end; undefined for a token of a login
 */
export function latestEnd(
  kind: TokenKind,
  { granted, lifetime }: { readonly granted: number; readonly lifetime: number | undefined },
  now: number,
  policy: Lifetimes,
): number {
  const ofGrant =
    lifetime === undefined ? endOfGrant(Math.min(granted, now), policy) : Number.POSITIVE_INFINITY
  return granted > now ? Math.min(ofGrant, now + (lifetime ?? lifetimeOf(kind, policy))) : ofGrant
}

/**
 * The lifetimes of the tokens that a login gets: none outlives it.
 *
 * @param age how long ago the login was (ms)
 */
export function lifetimesAt(age: number, policy: Lifetimes): Lifetimes {
  const left = endOfGrant(-age, policy)
  return {
    accessLifetime: Math.min(policy.accessLifetime, left),
    refreshLifetime: Math.min(policy.refreshLifetime, left),
  }
}

/**
 * How a refresh token is exchanged. `rotates`: new tokens of both kinds replace the presented token, which becomes spent, as does the live
 * refresh token of the grant if that is another one. Otherwise the presented token stays, with its expiry.
 */
interface ExchangePlan {
  readonly rotates: boolean
  readonly lifetimes: Lifetimes
}

/**
 * Plans the exchange of a refresh token, whose use `classifyRefresh` has classified. Undefined if the login is about to end, so a new access
 * token would get `expires_in` 0: many clients take 0 for a token that never expires (`golang.org/x/oauth2` does), and would not log in
 * again.
 *
 * A spent token is exchanged within its grace if its response is lost, as after a restart: the earlier process may have ended before the
 * client got the response. A refusal would lock out that client, so it gets a new pair. The live refresh token, which the client may not
 * have, becomes spent: one live refresh token remains, and reuse is still detected.
 *
 * @param granted the time of the login, on the clock of `now`
 */
export function planExchange(
  { spent, granted }: { readonly spent: Spent | undefined; readonly granted: number },
  now: number,
  policy: Lifetimes & { readonly rotateRefresh: boolean },
): ExchangePlan | undefined {
  const lifetimes = lifetimesAt(now - granted, policy)
  if (lifetimes.accessLifetime < 1_000) return undefined
  return { rotates: policy.rotateRefresh || spent !== undefined, lifetimes }
}

/**
 * The most logins of a store that counts grants and evicts whole ones: a login has two tokens at first.
 *
 * @param capacity `tokens.capacity`
 */
export function mostLogins(capacity: number): number {
  return Math.floor(capacity / 2)
}
