import type { Later } from '../system/later.ts'
import type { Spent, TokenKind, TokenPolicy } from './grant-rules.ts'
import type { GrantOwner, GrantSummary, RecentGrants } from './grant-table.ts'
import type { TokenLookup } from './look-up.ts'
import type { IssuedTokens, NewToken } from './mint.ts'
import type { Revocation } from './revocation.ts'

/** The shared store did not answer. It may have run the command all the same. A store in this process never returns this. */
export type Unavailable = 'unavailable'

/** A token of either kind, as a backend holds it. Times are on the clock of `Read.now` (ms). */
export interface StoredToken {
  readonly kind: TokenKind
  readonly spent: Spent | undefined
  /** The id of its grant. */
  readonly grant: string
  /** The time of the login. */
  readonly granted: number
  /** The response for a retry with a spent token; undefined if it is lost. */
  readonly response: IssuedTokens | undefined
  /**
   * Compare and set: changes the grant if its presented token is still as it was read, in one atomic step. This is a use of the grant.
   * Returns whether it has changed the grant: another refresh or a revocation may have been first.
   */
  set(exchange: Exchange): Later<boolean>
}

/** What an exchange of a refresh token changes in its grant. */
export interface Exchange {
  readonly added: readonly NewToken[]
  /**
   * The presented token and the live refresh token of the grant become spent. For `grace` (ms) a retry gets this response. Undefined if the
   * presented token stays.
   */
  readonly spends: { readonly response: IssuedTokens; readonly grace: number } | undefined
}

export interface Read {
  readonly now: number
  readonly token: StoredToken | undefined
}

export interface NewGrant {
  readonly id: string
  readonly client: string
  /** The epoch of the password; see `Backend`. */
  readonly epoch: string
  readonly added: readonly NewToken[]
  /** Only of an issued grant. */
  readonly label?: string
}

/**
 * Where grants are: in the memory of this process, with or without a file (`memory-backend.ts`), or at a server that sidecars share
 * (`fleet/shared-backend.ts`). It holds records, adds and removes them in atomic steps, and makes room by `grant-rules.ts`; the rules of
 * issuing, refreshing and revoking are in `token-store.ts`. Changes are durable when the answer comes. A backend that gives no answer rejects
 * with `BackendUnavailable`.
 *
 * - The epoch voids all tokens of an earlier password in one step. A grant is opened only under the present epoch; under an earlier one the
 *   answer is `stale`. The memory of this process has no epochs: it removes the tokens themselves.
 * - `tokens.offline_grace`: `identify` decides by the copies of this sidecar. Other sidecars revoke, too, and their events remove copies.
 *   While no events come, the copies count for this time and no longer. The memory of this process always counts.
 * - `store.replicas`: a read for a refresh, and each change, counts when so many replicas of the server have what it saw or wrote, because a
 *   former primary must neither refuse nor change a token. If they do not confirm in time, that is reported and the answer stands.
 */
export interface Backend {
  /**
   * Looks up an access token (C10). A valid one makes its grant the most recently used; a refresh token is unknown. `client`: the key of
   * the client that presents the token. Clients take turns if look-ups have to wait for the shared store. `now`: ms on the monotonic
   * clock, if the caller has read it in this turn.
   */
  identify(accessToken: string, client: string, now?: number): Later<TokenLookup>
  /** Reads the token that a client presents, and the present time. */
  read(presented: string): Later<Read>
  /**
   * Adds a grant, and makes room for it. `full`: the maximum number of issued grants exists, so this one was not added. `at`: the time of the
   * login on the wall clock of the backend (ms).
   */
  open(grant: NewGrant): Later<{ readonly at: number } | 'stale' | 'full'>
  /**
   * Removes grants, with the copies of their tokens. Returns those that were live.
   *
   * @param which what the caller revokes: other sidecars hear of it
   */
  remove(grants: readonly string[], reason: string, which: Revocation): Later<readonly string[]>
  /** Removes all grants. `ids`: perhaps only some of them. */
  removeAll(reason: string): Later<{ readonly count: number; readonly ids: readonly string[] }>
  /** The grant of a token of either kind. */
  grantOf(token: string): Later<string | undefined>
  /** Makes a grant the most recently used. */
  use(grant: string): void
  grants(): Later<readonly GrantSummary[]>
  /** `lost`: grants that are listed, though their tokens are lost. */
  owners(): Later<{ readonly grants: readonly GrantOwner[]; readonly lost: readonly string[] }>
  recentGrants(most: number): Later<RecentGrants>
  describe(ids: readonly string[]): Later<readonly GrantSummary[]>
  /** The issued grants. */
  issued(): Later<readonly GrantSummary[]>
  /** The tokens of logins in the memory of this process. */
  counts(): { readonly access: number; readonly refresh: number }
  /** New lifetimes of tokens apply to tokens issued from now on, a new `grantLifetime` to all logins. A smaller capacity evicts at once. */
  applyPolicy(policy: TokenPolicy): void
  /** Removes expired tokens and runs the maintenance of the store. Call it about once a second. */
  sweep(): void
}

/** The results of a store of this process. */
type Known<T> = Exclude<T, Promise<unknown> | Unavailable | 'stale' | { readonly kind: 'unavailable' }>

/** The same functions, with answers that are known at once. */
export type Now<T> = {
  [K in keyof T]: T[K] extends (...asked: infer A) => infer R ? (...asked: A) => Known<R> : T[K]
}

/** A backend gave no answer, so whether it has made the change is unknown. The message names no token and no password. */
export class BackendUnavailable extends Error {
  override readonly name: string = 'BackendUnavailable'
}
