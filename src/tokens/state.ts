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
}

export interface SharedTokenPolicy extends TokenPolicy {
  /** How long this sidecar accepts its copies of tokens while it hears nothing from the shared store (ms). */
  readonly offlineGrace: number
}

export interface IssuedTokens {
  /** The id of their grant. Undefined if another sidecar issued the tokens, and this one answers a retry. */
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

/** The result of a look-up in a store of this process. */
export type LocalLookup = Exclude<TokenLookup, { kind: 'unavailable' }>

/** The results of a look-up that finds no valid token. */
export const REFUSED = {
  unknown: { kind: 'refused', cause: 'unknown' },
  expired: { kind: 'refused', cause: 'expired' },
  revoked: { kind: 'refused', cause: 'revoked' },
} as const

/** The shared store did not answer. It may have run the command all the same. A store in this process never returns this. */
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

/** A revocation of all grants of a client or of a name. */
type RevokedOwner = Extract<Revocation, { client: string } | { name: string }>

/** A revocation that a sidecar begins by itself: of a name that left the configuration, or of the grants of its own sessions. */
export type Ending = Extract<Revocation, { name: string } | { grants: readonly string[] }>

/** Whether a revocation by client or name covers this grant. */
export function isTheirs(which: RevokedOwner, { id, client }: Pick<GrantSummary, 'id' | 'client'>): boolean {
  return 'client' in which ? prefix64(client) === which.client : nameOfGrant(id) === which.name
}

/**
 * The grants that a revocation covers and the store has forgotten, but a request in flight still uses: an upload continues after the expiry
 * of its grant. A revocation by client is compared with the client of the request, because the store has forgotten that of the grant.
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
  /** When the last of its tokens expires. */
  readonly expiresAt: number
  /** The last request or refresh that this sidecar saw; null if it saw none since its start. */
  readonly usedAt: number | null
  readonly accessTokens: number
  /** 1, or 0 once the refresh token has expired. An issued grant has none. */
  readonly refreshTokens: number
  /** Only for an issued grant (`Handout`); empty if the operator gave no label. */
  readonly label?: string
}

/** The fields of a grant that a search compares. */
export type GrantOwner = Pick<GrantSummary, 'id' | 'client' | 'label'>

/** The grants that were used last. */
export interface RecentGrants {
  /** All live grants. */
  readonly total: number
  /** The issued grants, then the others, the most recently used first. A login is a use. */
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
   * the client that presents the token. Clients take turns if look-ups have to wait for the shared store. `now`: ms on the monotonic
   * clock, if the caller has read it in this turn.
   */
  identify(accessToken: string, client: string, now?: number): Later<TokenLookup>
  /** Revokes grants with all their tokens, durably. Returns the number of grants. */
  revoke(which: Revocation, reason: string): Later<number | Unavailable>
  grants(): Later<readonly GrantSummary[] | Unavailable>
  /**
   * The most recently used grants, at most `most`, at a cost that depends on `most` only. With a shared store, only the uses that this
   * sidecar saw count; other grants follow, the last to expire first.
   */
  recentGrants(most: number): Later<RecentGrants | Unavailable>
  /** The owners of all live grants, the least recently used first, issued grants last. With a shared store: the first to expire first. */
  owners(): Later<readonly GrantOwner[] | Unavailable>
  /** The summaries of these grants, without those that are not live. */
  describe(ids: readonly string[]): Later<readonly GrantSummary[] | Unavailable>
  /** The tokens of logins in the memory of this process. */
  counts(): { readonly access: number; readonly refresh: number }
  /** New lifetimes of tokens apply to tokens issued from now on, a new `grantLifetime` to all logins. A smaller capacity evicts at once. */
  applyPolicy(policy: SharedTokenPolicy): void
  /** Removes expired tokens and runs the maintenance of the store. Call it about once a second. */
  sweep(): void
}

/** A value, or a promise of it if the shared store has to be asked. */
export type Later<T> = T | Promise<T>

/**
 * The tokens for a right password, or why there are none. `other-name`: the password is right, but belongs to another name than
 * `username`. `overloaded`: too many passwords are being checked. `unavailable`: the shared store did not respond. An `UpstreamFailure`:
 * the device has to check the password, and did not respond. `slowedFor`: the attempt may begin after this time (ms).
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

/**
 * Verifies the password and issues the tokens of a new grant. `grantType`: the `grant` label of the metric. `username`: as in
 * `Passwords.verify`.
 */
export type LogIn = (
  password: string,
  request: LoginRequest,
  grantType: string,
  username?: string,
) => Promise<LogInResult>

/**
 * An operator's request for one access token without a refresh token, for a client that cannot log in. Its grant is called an issued grant.
 * No login evicts an issued grant, and a change of its password revokes it like every other (C8).
 */
export interface Handout {
  /** The name of the password, which gives the token its `allow` and whose change revokes it; empty for `password`. */
  readonly name: string
  /** The operator's name for the token; may be empty. */
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

/** The maximum number of issued grants exists. `longestUnused`: the one with the longest time since its last use. */
export interface AllIssued {
  readonly longestUnused: GrantSummary | undefined
}

/**
 * Issues a token, unless the bound is reached or no change of a password could revoke it. `unknown-name`: no password has this name.
 * `no-password`: the account has no password now. `checked-by-device`: with `password.device` there is no fingerprint before a login, so a
 * change of the password would go unnoticed.
 */
type HandOut = (
  handout: Handout,
) => Later<HandedOut | AllIssued | 'unknown-name' | 'no-password' | 'checked-by-device' | Unavailable>

/** A live issued grant. An alarm names it before its token ends. */
export type IssuedGrant = GrantSummary & { readonly label: string }

/** The password and the tokens issued for it: a password change revokes the tokens (C8). */
export interface State {
  readonly logIn: LogIn
  readonly handOut: HandOut
  /** The live issued grants. With a shared store, those in its last answer: the sidecar asks every ten seconds. */
  issued(): readonly IssuedGrant[]
  readonly tokens: Tokens
  /**
   * Revokes grants. This sidecar refuses their tokens at once. A shared store that does not answer gets the revocation when it answers
   * again. Returns whether the store has the revocation.
   */
  end(which: Ending, reason: string): Later<boolean>
  /** The number of live tokens that are not in the token file, so that a restart would lose them; undefined without such a file. */
  unsaved(): number | undefined
  /** When the token file was found to be a copy (ms, wall clock); undefined if it is no copy, or no token of the copy is left. */
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

/** The requests in flight with a token. They end with the grants of their tokens (C8): see `gate/live-exchanges.ts`. */
export interface LiveRequests {
  /** Ends all requests of these revoked grants. */
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
  /** Whether the configuration has this name; the empty name stands for `password`. */
  readonly hasName: (name: string) => boolean
  readonly hashMemory: HashMemory
  /** Which clients go first while passwords wait. */
  readonly precedence: Precedence
  /** Replaces `STORE_BOUNDS` of the shared store (ms). */
  readonly storeBounds?: { readonly timeout?: number } | undefined
  readonly onBug: (error: unknown) => void
  /** An operator has revoked these grants at a sidecar of the fleet. */
  readonly onOperatorRevoked: (which: Revocation) => void
  /** Called when the password has changed or is gone, and when its source can be read again. */
  readonly onPasswordRead: () => void
}

/** Events of this sidecar. With a shared store, each sidecar reports only its own operations. */
export interface TokenEvents {
  /** A token response was made for this grant type. */
  issued(grantType: string): void
  /**
   * @param grants how many were revoked
   * @param ids of the revoked grants; with a shared store perhaps only some of them
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

/** The names in the ids of these grants, for a line of the log. */
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
