import type { Config } from '../config/schema.ts'
import type { DevicePassword, DeviceSignIn } from '../password/device-source.ts'
import type { PasswordFunctions } from '../password/hook-functions.ts'
import type { Replacement } from '../password/sources.ts'
import type { HashMemory } from '../password/verifier.ts'
import type { Precedence } from '../password/weighted-turns.ts'
import type { Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import type { Clock } from '../system/clock.ts'
import type { Later } from '../system/later.ts'
import type { IssuedGrant } from './handout.ts'
import type { HandOut, LogIn } from './issuing.ts'
import type { Ending, LiveRequests, Revocation } from './revocation.ts'
import type { Tokens } from './token-store.ts'

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
  /** The source of the password. `replace`: as in `openPassword`. */
  readonly password: Pick<DevicePassword, 'state'> & {
    readonly replace: (next: Config, limit: number) => Promise<Replacement>
  }
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

export interface StateDependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly signIn: DeviceSignIn | undefined
  /** The functions that check the password, of the program that embeds Postern. */
  readonly verify?: PasswordFunctions | undefined
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
