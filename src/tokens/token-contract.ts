import type { TokenKind } from './grant-table.ts'

export interface TokenPolicy {
  /** How many tokens are kept, of both kinds together. */
  readonly capacity: number
  /** Lifetimes and grace in milliseconds. */
  readonly accessLifetime: number
  readonly refreshLifetime: number
  readonly rotateRefresh: boolean
  readonly refreshGrace: number
}

export interface IssuedTokens {
  readonly accessToken: string
  readonly refreshToken: string
  /** Whole seconds. */
  readonly expiresIn: number
}

export type TokenLookup =
  | { readonly kind: 'valid'; readonly grant: string }
  | { readonly kind: 'refused'; readonly cause: 'unknown' | 'expired' | 'revoked' }

/**
 * Whose tokens to revoke. `client` is what the limits count by: an address, or the /64 of an IPv6 one. `token` may be of
 * either kind and means its whole grant (RFC 7009 §2.1 allows that).
 */
export type Revocation =
  | { readonly all: true }
  | { readonly grant: string }
  | { readonly client: string }
  | { readonly token: string }

/** A grant for people to look at. The times are on the wall clock, in milliseconds. */
export interface GrantSummary {
  readonly id: string
  readonly client: string
  readonly issuedAt: number
  /** When its last token expires. */
  readonly expiresAt: number
  readonly accessTokens: number
}

export interface TokenListener {
  /** A new pair of tokens was given for a grant of this type. */
  issued(grantType: string): void
  /** Called before `revoke` gives its answer, so that what was admitted under these grants can be closed. */
  revoked(grants: readonly string[], reason: string): void
  evicted(kind: TokenKind, count: number): void
}

/**
 * What requests and operators ask of the tokens. A store that several sidecars share has to be asked elsewhere and gives
 * promises; one that knows at once gives none, and costs none. A promise that fails is a bug: what a store cannot find out it
 * answers with a refusal.
 */
export interface Tokens {
  /** The tokens of a new grant, which was given for the password unless another `grantType` is named. */
  issue(client: string, grantType?: string): IssuedTokens | Promise<IssuedTokens>
  /** C6. `undefined` (`invalid_grant`) for anything but a live refresh token, an access token included. */
  refresh(refreshToken: string): IssuedTokens | undefined | Promise<IssuedTokens | undefined>
  /** C10. A refresh token is unknown here. A valid one makes its grant the most recently used. */
  identify(accessToken: string): TokenLookup | Promise<TokenLookup>
  /** The number of grants revoked. Durable when it is given. */
  revoke(which: Revocation, reason: string): number | Promise<number>
  grants(): readonly GrantSummary[] | Promise<readonly GrantSummary[]>
}

/** The tokens of this process, which knows at once. */
export interface TokenStore extends Tokens {
  issue(client: string, grantType?: string): IssuedTokens
  refresh(refreshToken: string): IssuedTokens | undefined
  identify(accessToken: string): TokenLookup
  revoke(which: Revocation, reason: string): number
  grants(): readonly GrantSummary[]
  counts(): { readonly access: number; readonly refresh: number }
  /** Live tokens that a restart would lose, because the disk could not be written. Always 0 for `tokens.store: memory`. */
  unsaved(): number
  /** Drops what has expired and lets the journal do its chores. To be called about once a second. */
  sweep(): void
  /** Lifetimes count for tokens issued from now on; a smaller capacity evicts at once. */
  applyPolicy(policy: TokenPolicy): void
}
