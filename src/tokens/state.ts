import type { Client } from '../http/admission.ts'
import type { UpstreamFailure } from '../http/refusal.ts'
import type { DevicePassword, DevicePasswordDependencies } from '../password/device-source.ts'
import type { PasswordsEvents } from '../password/sources.ts'
import type { Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import type { Clock } from '../system/clock.ts'
import type { IssuedTokens, TokenListener, Tokens, Unavailable } from './token-contract.ts'

/**
 * The tokens for a right password, or why there are none. `overloaded`: too many passwords are being checked. An `UpstreamFailure`: the
 * device has to check the password, and did not respond. `unavailable`: the shared store did not respond. `slowedFor`: the attempt may begin
 * after this time (ms).
 */
export type LogInResult =
  | IssuedTokens
  | 'wrong'
  | 'overloaded'
  | Unavailable
  | { readonly unavailable: UpstreamFailure }
  | { readonly slowedFor: number }

/** Verifies the password and issues the tokens of a new grant. `grantType`: the `grant` label of the metric. */
export type LogIn = (password: string, client: Client, grantType: string) => Promise<LogInResult>

/** The password and the tokens issued for it: a password change revokes the tokens (C8). */
export interface State {
  readonly logIn: LogIn
  readonly tokens: Tokens
  /** Live tokens that are not in the token file and that a restart would lose; undefined without such a file. */
  unsaved(): number | undefined
  /** The source of the password. */
  readonly password: Pick<DevicePassword, 'state'>
  /** Whether the shared store answers and accepts all commands; undefined without one. */
  storeUp(): boolean | undefined
  /** Why this sidecar cannot issue tokens; empty if it can. */
  troubles(): readonly string[]
  close(): Promise<void>
}

export interface StateDependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly signIn: DevicePasswordDependencies['signIn'] | undefined
  /** The requests in flight, which end when their grant is revoked. */
  readonly live: {
    cut(grants: readonly string[]): void
    grants(): Iterable<string>
  }
  /** Whether the configuration has this name; the empty one is that of `password`. */
  readonly hasName: (name: string) => boolean
  readonly onBug: (error: unknown) => void
  /** The password has changed, or its file can be read again. */
  readonly onPasswordRead: () => void
}

/** What this sidecar itself did. Each counts its own operations, also with a shared store. */
export interface TokenEvents extends Pick<TokenListener, 'issued' | 'evicted'> {
  revoked(grants: number, reason: string): void
}

/** Counts and logs what happens to tokens. */
export function tokenEvents({ log, metrics }: Pick<StateDependencies, 'log' | 'metrics'>): TokenEvents {
  return {
    issued: metrics.tokensIssued,
    revoked(grants, reason) {
      metrics.tokensRevoked(reason, grants)
      log.warn({ grants, reason }, 'tokens revoked')
    },
    evicted(kind, count) {
      metrics.tokensEvicted(kind, count)
      log.warn({ kind, count }, 'tokens evicted: the store is full, see tokens.capacity')
    },
  }
}

/** Counts and logs when the password source cannot be used. Call it once for a source. */
export function sourceEvents({
  log,
  metrics,
  onPasswordRead,
}: StateDependencies): Pick<PasswordsEvents, 'unreadable' | 'restored' | 'ambiguous'> {
  metrics.storeOpened('password', ['read'])
  return {
    unreadable(reason) {
      metrics.storeFailed('password', 'read')
      log.error({ reason }, 'the password source cannot be used; the last good password stays valid')
    },
    restored() {
      log.info('the password source can be used again')
      onPasswordRead()
    },
    ambiguous: (names) =>
      log.error({ names }, 'several names have the same password, which logs nobody in; change one of them'),
  }
}
