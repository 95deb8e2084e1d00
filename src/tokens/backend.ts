import type { Later } from '../system/later.ts'
import type { Spent, TokenKind, TokenPolicy } from './grant-rules.ts'
import type { GrantOwner, GrantSummary, RecentGrants } from './grant-table.ts'
import type { TokenLookup } from './look-up.ts'
import type { IssuedTokens, NewToken } from './mint.ts'
import type { Revocation } from './revocation.ts'

/** The shared store did not answer. It may have run the command all the same. A store in this process never returns this. */
export type Unavailable = 'unavailable'

/** A token of either kind, as a backend holds it. Times are on the clock of `Read.now` (ms). */
interface StoredToken {
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
   * The presented token becomes spent. So does the live refresh token of the grant, if that is another one: the presented one was spent
   * before, and its response is lost. For `grace` (ms) a retry gets this response. Undefined if the presented token stays.
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
 * Where grants are, as records. There are three: the memory of this process (`memory-backend.ts`), the same with a journal on disk
 * (`journal.ts`), and a server that sidecars share (`fleet/shared-backend.ts`). Each reads and changes grants in atomic steps, and makes room.
 * The rules of issuing, refreshing and revoking are in `token-store.ts` and `grant-rules.ts`. A backend that gives no answer rejects with
 * `BackendUnavailable`.
 *
 * A change is made when its answer comes. What keeps it then, and `store.replicas`:
 *
 * - memory: the process. There are no replicas.
 * - journal: the file. There are no replicas. A power cut can lose the logins and refreshes of about a second, and no revocation.
 * - server: its memory, and with `store.replicas` that of so many replicas. A read for a refresh waits for them, too, because a former primary
 *   must neither refuse nor change a token. If they do not confirm in time, that is reported and the answer stands. If the server ends before
 *   they confirm, there is no answer.
 *
 * The epoch: a new password voids the tokens of the earlier one.
 *
 * - memory: has no epochs, and removes the tokens themselves.
 * - journal: as memory. The file has a fingerprint of the password, and a start with another password removes its tokens.
 * - server: a later epoch voids all tokens in one step, except those of names whose password stays. A grant is opened under the present
 *   epoch only; under an earlier one the answer is `stale`.
 *
 * `tokens.offline_grace`: how long `identify` decides without news.
 *
 * - memory, journal: no other process revokes, so it does not apply.
 * - server: `identify` decides by the copies of this sidecar, and the events of other sidecars remove copies. While no event comes, the
 *   copies count for this time, at the least until the sidecar notices the silence. Then `identify` asks the server, and is `unavailable`
 *   without an answer.
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
  /**
   * New lifetimes of tokens apply to tokens issued from now on, a new `grantLifetime` to all logins. A smaller capacity evicts at once in the
   * memory of this process, and with the next logins at a server.
   */
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
