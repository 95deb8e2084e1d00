import type { Config } from '../config/schema.ts'
import type { SharedTokensListener } from '../fleet/tokens.ts'
import type { LiveExchanges } from '../gate/live-exchanges.ts'
import type { LogIn } from '../oauth/password-grant.ts'
import {
  createDevicePassword,
  type DevicePassword,
  type DevicePasswordEvents,
  type StoredFingerprint,
} from '../password/device-source.ts'
import { openPasswordSource, type PasswordSourceEvents } from '../password/source.ts'
import type { Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import type { SignIn } from '../sign-in/sign-in.ts'
import type { Clock } from '../system/clock.ts'
import { SetupError } from '../system/setup-error.ts'
import type { Tokens } from '../tokens/token-contract.ts'

/** The password and the tokens issued for it: a password change revokes the tokens (C8). */
export interface State {
  readonly logIn: LogIn
  readonly tokens: Tokens
  /** Live tokens that are not in the token file and that a restart would lose; undefined without such a file. */
  unsaved(): number | undefined
  /** The source of the password. */
  readonly password: Pick<DevicePassword, 'state'>
  /** Why this sidecar cannot issue tokens; empty if it can. */
  troubles(): readonly string[]
  close(): Promise<void>
}

export interface StateDependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly signIn: SignIn | undefined
  /** The requests in flight, which end when their grant is revoked. */
  readonly live: Pick<LiveExchanges, 'cut' | 'grants'>
  readonly onBug: (error: unknown) => void
  /** The password has changed, or its file can be read again. */
  readonly onPasswordRead: () => void
}

/** How often expired tokens are removed (ms). */
export const SWEEP_INTERVAL = 1_000

/** Counts and logs what happens to tokens. A revocation is counted by the sidecar that makes it. */
export function tokenEvents({ log, metrics }: StateDependencies): SharedTokensListener {
  return {
    issued: (grantType) => metrics.tokensIssued(grantType, 1),
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
}: StateDependencies): Pick<PasswordSourceEvents, 'unreadable' | 'restored'> {
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
  }
}

/** Opens the password source. Rejects with `SetupError` if it cannot be used. */
export async function openPassword(
  { password }: Config,
  { clock, signIn }: StateDependencies,
  stored: StoredFingerprint | undefined,
  events: PasswordSourceEvents & DevicePasswordEvents,
): Promise<DevicePassword> {
  if (!('device' in password)) return openPasswordSource(password, { clock, events })
  if (signIn === undefined)
    throw new SetupError('password.device: needs upstream.auth, which defines how to sign in')
  return createDevicePassword({ signIn, events, stored })
}
