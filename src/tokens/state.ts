import type { Client } from '../http/admission.ts'
import type { Exchange } from '../http/exchange.ts'
import { prefix64 } from '../http/ip.ts'
import type { UpstreamFailure } from '../http/refusal.ts'
import { nameOfGrant } from '../http/scope.ts'
import type { DevicePassword, DeviceSignIn } from '../password/device-source.ts'
import type { PasswordSourceState } from '../password/source.ts'
import type { HashMemory } from '../password/verifier.ts'
import type { Precedence } from '../password/weighted-turns.ts'
import type { Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import type { Clock } from '../system/clock.ts'
import type { Lifetimes, TokenKind } from './grant-rules.ts'

/** How many tokens that an operator handed out may be valid at once: each waits for the day on which it is forgotten. */
export const MOST_ISSUED = 100

export interface TokenPolicy extends Lifetimes {
  /** The maximum number of tokens, both kinds together. */
  readonly capacity: number
  /** The maximum number of issued grants (`Handout`), outside of the capacity; default: `MOST_ISSUED`. */
  readonly issued?: number
  readonly rotateRefresh: boolean
  /** Milliseconds. */
  readonly refreshGrace: number
}

export interface SharedTokenPolicy extends TokenPolicy {
  /** How long the tokens that this sidecar knows work while it hears nothing from the shared store (ms). */
  readonly offlineGrace: number
}

export interface IssuedTokens {
  /** The id of their grant. Unknown if another sidecar issued them, and this one answers a retry. */
  readonly grant?: string
  readonly accessToken: string
  readonly refreshToken: string
  /** Whole seconds. */
  readonly expiresIn: number
}

/** `unavailable`: the shared store did not answer, so the token may be valid or not. */
export type TokenLookup =
  | { readonly kind: 'valid'; readonly grant: string }
  | { readonly kind: 'refused'; readonly cause: 'unknown' | 'expired' | 'revoked' }
  | { readonly kind: 'unavailable' }

/** What a store in this process finds. */
export type LocalLookup = Exclude<TokenLookup, { kind: 'unavailable' }>

/** What is found instead of a valid token. */
export const REFUSED = {
  unknown: { kind: 'refused', cause: 'unknown' },
  expired: { kind: 'refused', cause: 'expired' },
  revoked: { kind: 'refused', cause: 'revoked' },
} as const

/** The shared store did not answer. It may have done what was asked. A store in this process never says so. */
export type Unavailable = 'unavailable'

/**
 * Which grants to revoke. `client`: an IPv4 address or the /64 of an IPv6 one, as for the rate limits. `name`: those of one entry of
 * `passwords`. `token`: the grant of a token of either kind (RFC 7009 §2.1 allows to revoke the whole grant).
 */
export type Revocation =
  | { readonly all: true }
  | { readonly grant: string }
  | { readonly grants: readonly string[] }
  | { readonly client: string }
  | { readonly name: string }
  | { readonly token: string }

/** The reason of a revocation by an operator: a value of the `reason` label of `postern_tokens_revoked_total`. */
export const BY_OPERATOR = 'operator'

/** Whose grants to revoke. */
export type RevokedOwner = Extract<Revocation, { client: string } | { name: string }>

/** What a sidecar ends for good by itself: a name that is gone, or the grants of its own sessions. */
export type Ending = Extract<Revocation, { name: string } | { grants: readonly string[] }>

/** Whether a revocation by client or name means this grant. */
export function isTheirs(which: RevokedOwner, { id, client }: Pick<GrantSummary, 'id' | 'client'>): boolean {
  return 'client' in which ? prefix64(client) === which.client : nameOfGrant(id) === which.name
}

/**
 * The grants of a revocation that only requests in flight still use: the store has them no more, but an upload goes on after the expiry of
 * its grant. The store has forgotten their clients, so the clients of the requests count.
 *
 * @param isLive whether the store has the grant
 */
export function unfinishedOf(
  which: Revocation,
  live: Pick<LiveRequests, 'granted'>,
  isLive: (grant: string) => boolean,
): readonly string[] {
  const theirs = Array.from(live.granted()).filter(({ grant, client }) => {
    if (isLive(grant) || 'token' in which) return false
    if ('grant' in which) return grant === which.grant
    if ('grants' in which) return which.grants.includes(grant)
    return 'all' in which || isTheirs(which, { id: grant, client: client.address })
  })
  return [...new Set(theirs.map(({ grant }) => grant))]
}

/** A grant as `postern status` shows it. Times are on the wall clock (ms). */
export interface GrantSummary {
  readonly id: string
  readonly client: string
  readonly issuedAt: number
  /** When its last token expires. */
  readonly expiresAt: number
  /** The last request or refresh that this sidecar saw; null if it saw none since its start. */
  readonly usedAt: number | null
  readonly accessTokens: number
  /** 1, or 0 once the refresh token has expired. An issued grant has none. */
  readonly refreshTokens: number
  /** Only of an issued grant (`Handout`); empty if the operator gave none. */
  readonly label?: string
}

/** Whose grant it is: the parts that a search compares. */
export type GrantOwner = Pick<GrantSummary, 'id' | 'client' | 'label'>

/** The grants that were used last. */
export interface RecentGrants {
  /** All live grants. */
  readonly total: number
  /** The issued ones, then the most recently used first. A login is a use. */
  readonly grants: readonly GrantSummary[]
}

/**
 * The token operations of requests and operators. A store that several sidecars share returns promises; a store in this
 * process returns values, which saves the cost of promises. A rejected promise is a bug.
 */
export interface Tokens {
  /** Exchanges a live refresh token (C6). `undefined` (`invalid_grant`) for any other string, also for an access token. */
  refresh(refreshToken: string): Later<IssuedTokens | undefined | Unavailable>
  /**
   * Looks up an access token (C10). A valid one makes its grant the most recently used; a refresh token is unknown. `client`: the key of
   * the client that presents it, by whom look-ups that have to wait take turns.
   */
  identify(accessToken: string, client: string): Later<TokenLookup>
  /** Revokes grants with all their tokens, durably. Returns the number of grants. */
  revoke(which: Revocation, reason: string): Later<number | Unavailable>
  grants(): Later<readonly GrantSummary[] | Unavailable>
  /**
   * At most `most` grants, in time that depends on `most` only. The uses that count are those that this sidecar saw; of other grants in
   * a shared store, those whose last token expires last.
   */
  recentGrants(most: number): Later<RecentGrants | Unavailable>
  /** The owners of all live grants, the least recently used first, issued ones last; in a shared store, the first to expire first. */
  owners(): Later<readonly GrantOwner[] | Unavailable>
  /** The summaries of those of these grants that are live. */
  describe(ids: readonly string[]): Later<readonly GrantSummary[] | Unavailable>
  /** The tokens of logins in the memory of this process. */
  counts(): { readonly access: number; readonly refresh: number }
  /** New lifetimes apply to tokens issued from now on, that of a login to all logins. A smaller capacity evicts at once. */
  applyPolicy(policy: SharedTokenPolicy): void
  /** Removes expired tokens and runs the maintenance of the store. Call it about once a second. */
  sweep(): void
}

/** A value, or a promise of it if the shared store has to be asked. */
export type Later<T> = T | Promise<T>

/**
 * The tokens for a right password, or why there are none. `other-name`: the password is right, but not the one of the name in `username`.
 * `overloaded`: too many passwords are being checked. An `UpstreamFailure`: the
 * device has to check the password, and did not respond. `unavailable`: the shared store did not respond. `slowedFor`: the attempt may begin
 * after this time (ms).
 */
export type LogInResult =
  | IssuedTokens
  | 'wrong'
  | 'other-name'
  | 'overloaded'
  | Unavailable
  | { readonly unavailable: UpstreamFailure }
  | { readonly slowedFor: number }

/** The request of a login. */
export type LoginRequest = Pick<Exchange, 'client' | 'ended' | 'onEnd'>

/** Verifies the password and issues the tokens of a new grant. `grantType`: the `grant` label of the metric. `username`: as in `Passwords.verify`. */
export type LogIn = (
  password: string,
  request: LoginRequest,
  grantType: string,
  username?: string,
) => Promise<LogInResult>

/**
 * What an operator asks for: one access token without a refresh token, for a client that cannot log in. Its grant is an issued grant. No
 * login evicts it, and it ends with its password as every other (C8).
 */
export interface Handout {
  /** Of the password that it ends with, and whose `allow` it has; empty for `password`. */
  readonly name: string
  /** What the operator calls it; may be empty. */
  readonly label: string
  /** Milliseconds. */
  readonly lifetime: number
}

export interface HandedOut {
  readonly accessToken: string
  /** The id of its grant. */
  readonly grant: string
  /** On the wall clock (ms). */
  readonly expiresAt: number
}

/** There are as many issued grants as there may be. `longestUnused`: the one that was used longest ago. */
export interface AllIssued {
  readonly longestUnused: GrantSummary | undefined
}

/**
 * Issues a token, unless nothing could end it or the bound is reached. `unknown-name`: no password has this name. `no-password`: the
 * account has none now. `checked-by-device`: `password.device` has no fingerprint before a login, so a changed password would go unnoticed.
 */
export type HandOut = (
  handout: Handout,
) => Later<HandedOut | AllIssued | 'unknown-name' | 'no-password' | 'checked-by-device' | Unavailable>

/** A live issued grant. An alarm names it before its token ends. */
export type IssuedGrant = GrantSummary & { readonly label: string }

/** The password and the tokens issued for it: a password change revokes the tokens (C8). */
export interface State {
  readonly logIn: LogIn
  readonly handOut: HandOut
  /** The live issued grants. With a shared store, as it said last: it is asked every ten seconds. */
  issued(): readonly IssuedGrant[]
  readonly tokens: Tokens
  /**
   * Revokes grants for good. They are over at this sidecar at once. A shared store that does not take the revocation is owed it, and gets
   * it when it answers. Returns whether the store has taken it.
   */
  end(which: Ending, reason: string): Later<boolean>
  /** Live tokens that are not in the token file and that a restart would lose; undefined without such a file. */
  unsaved(): number | undefined
  /** When the token file was found to be a copy (ms, wall clock); undefined if that does not matter any more: see `openJournal`. */
  copiedAt(): number | undefined
  /** The source of the password. */
  readonly password: Pick<DevicePassword, 'state' | 'replace'>
  /** Undefined without a shared store. */
  store(): StoreCondition | undefined
  /** Why this sidecar cannot issue tokens; empty if it can. */
  troubles(): readonly string[]
  close(): Promise<void>
}

export interface StoreCondition {
  /** Whether the shared store answers and accepts all commands. */
  readonly up: boolean
  /** Its servers, as the configuration names them. */
  readonly address: string
  /** Why it does not answer or refuses commands; null if it is up. */
  readonly reason: string | null
}

/** The requests in flight that grants have admitted. They end with their grants (C8): see `gate/live-exchanges.ts`. */
export interface LiveRequests {
  /** Ends all requests of these grants, which are revoked. */
  cut(grants: readonly string[]): void
  /** Ends the streams and tunnels of the grants that are over; `now` on the monotonic clock (ms). */
  endStreams(now: number, isOver: (grant: string) => boolean): void
  granted(): Iterable<{ readonly grant: string; readonly client: Pick<Client, 'address'> }>
  /** The grants of the streams and tunnels that are open `now`. */
  streaming(now: number): ReadonlySet<string>
}

/** The grants of these requests. */
export function grantsInFlight(live: Pick<LiveRequests, 'granted'>): ReadonlySet<string> {
  return new Set(Array.from(live.granted(), ({ grant }) => grant))
}

export interface StateDependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly signIn: DeviceSignIn | undefined
  readonly live: LiveRequests
  /** Whether the configuration has this name; the empty one is that of `password`. */
  readonly hasName: (name: string) => boolean
  readonly hashMemory: HashMemory
  /** Which clients go first while passwords wait. */
  readonly precedence: Precedence
  /** In place of those of every shared store. */
  readonly storeBounds?: { readonly timeout?: number } | undefined
  readonly onBug: (error: unknown) => void
  /** An operator has revoked these grants at a sidecar of the fleet. */
  readonly onOperatorRevoked: (which: Revocation) => void
  /** The password has changed, or its file can be read again. */
  readonly onPasswordRead: () => void
}

/** What this sidecar itself did. Each counts its own operations, also with a shared store. */
export interface TokenEvents {
  /** A token response was made for this grant type. */
  issued(grantType: string): void
  /**
   * @param grants how many were revoked
   * @param ids of the revoked grants; a shared store may tell only some
   */
  revoked(grants: number, reason: string, ids?: readonly string[]): void
  evicted(kind: TokenKind, count: number): void
}

/** The most grants that a line of the log names. */
export const MOST_LISTED = 100

/** Counts and logs what happens to tokens. */
export function tokenEvents({ log, metrics }: Pick<StateDependencies, 'log' | 'metrics'>): TokenEvents {
  return {
    issued: metrics.tokensIssued,
    revoked(grants, reason, ids) {
      metrics.tokensRevoked(reason, grants)
      log.warn({ grants, reason, ...namesOf(ids), ids: ids?.slice(0, MOST_LISTED) }, 'tokens revoked')
    },
    evicted(kind, count) {
      metrics.tokensEvicted(kind, count)
      log.warn({ kind, count }, 'tokens evicted: the store is full, see tokens.capacity')
    },
  }
}

/** Whose grants these are, if `passwords` names them. */
function namesOf(ids: readonly string[] = []): { readonly names?: readonly string[] } {
  const names = [...new Set(ids.map(nameOfGrant))].filter((name) => name !== '')
  return names.length === 0 ? {} : { names }
}

const NO_PASSWORD = 'there is no password: logins are refused, and the tokens of the earlier one have ended'

/** Logs and counts at the start that names have no password. */
export function reportAbsent(
  { log, metrics }: Pick<StateDependencies, 'log' | 'metrics'>,
  { absent }: PasswordSourceState,
): void {
  if (absent === undefined) return
  metrics.storeFailed('password', 'absent')
  log.error({ reason: absent }, NO_PASSWORD)
}

/**
 * Counts and logs what happens to the password source. Call it once for a source.
 *
 * @param onChanged revokes the tokens of a name that has another password, or is new; empty for `password`
 */
export function sourceEvents(
  { log, metrics, onPasswordRead }: Pick<StateDependencies, 'log' | 'metrics' | 'onPasswordRead'>,
  onChanged: (name: string) => void,
) {
  metrics.storeOpened('password', ['read', 'absent'])
  return {
    added(name: string): void {
      onChanged(name)
      onPasswordRead()
    },
    changed(name = ''): void {
      onChanged(name)
      log.warn(name === '' ? {} : { name }, 'the password has changed')
      onPasswordRead()
    },
    absent(name: string, reason: string): void {
      onChanged(name)
      metrics.storeFailed('password', 'absent')
      log.error({ ...(name === '' ? {} : { name }), reason }, NO_PASSWORD)
      onPasswordRead()
    },
    unreadable(reason: string): void {
      metrics.storeFailed('password', 'read')
      log.error({ reason }, 'the password source cannot be used; the last good password stays valid')
    },
    restored(): void {
      log.info('the password source can be used again')
      onPasswordRead()
    },
    ambiguous: (names: readonly string[]): void =>
      log.error({ names }, 'several names have the same password, which logs nobody in; change one of them'),
  }
}
