import { checkedByDevice, passwordSources, socketOfHook } from '../config/password-fields.ts'
import type { Config } from '../config/schema.ts'
import {
  createDevicePassword,
  type DevicePassword,
  type DevicePasswordEvents,
  type DeviceSignIn,
} from '../password/device-source.ts'
import type { Hook, PasswordFunctions } from '../password/hook.ts'
import { createHookFunctions } from '../password/hook-functions.ts'
import { createHookSocket } from '../password/hook-socket.ts'
import { type HookPasswordEvents, openHookPassword } from '../password/hook-source.ts'
import { openPasswords, type PasswordsEvents, type Replacement } from '../password/sources.ts'
import type { HashMemory } from '../password/verifier.ts'
import type { Precedence } from '../password/weighted-turns.ts'
import type { Clock } from '../system/clock.ts'
import { SetupError } from '../system/setup-error.ts'

/** What the kinds of password need. */
export interface PasswordDependencies {
  readonly clock: Clock
  /** How `password.device` asks the device; undefined without `upstream.auth`. */
  readonly signIn: DeviceSignIn | undefined
  /** The functions that check the password, of the program that embeds Postern. */
  readonly verify?: PasswordFunctions | undefined
  readonly hashMemory: HashMemory
  /** Which clients go first while passwords wait. */
  readonly precedence: Precedence
  readonly onBug: (error: unknown) => void
}

/** The password of the device, whatever verifies it. */
interface OpenPassword {
  readonly password: DevicePassword
  /**
   * Opens the source that the configuration names in the place of the present one, which is of the same kind. Rejects with `SetupError`, and
   * changes nothing, if it cannot be used.
   *
   * @param limit the memory for hashes from the swap on (bytes)
   */
  readonly replace: (next: Config, limit: number) => Promise<Replacement>
}

/** Opens the source of the password. Rejects with `SetupError` if it cannot be used. */
export async function openPassword(
  config: Config,
  deps: PasswordDependencies,
  events: PasswordsEvents & DevicePasswordEvents & HookPasswordEvents,
): Promise<OpenPassword> {
  const { clock, signIn, hashMemory: memory, precedence, onBug } = deps
  const hook = hookOf(config, deps)
  if (hook !== undefined) {
    const password = await openHookPassword(clock, hook, events, onBug, precedence)
    return { password, replace: (next) => password.replace(hookOf(next, deps) ?? hook) }
  }
  if (checkedByDevice(config)) {
    if (signIn === undefined)
      throw new SetupError('needs upstream.auth, which defines how to sign in', { key: 'password.device' })
    const password = createDevicePassword(clock, signIn, events, precedence)
    return { password, replace: async () => ({ swap() {}, discard() {} }) }
  }
  const password = await openPasswords(passwordSources(config), { clock, events, memory, precedence })
  return { password, replace: (next, limit) => password.replace(passwordSources(next), limit) }
}

/** The functions of the program that embeds Postern, or the socket of the configuration; undefined if no hook checks the password. */
function hookOf(config: Config, { clock, verify }: PasswordDependencies): Hook | undefined {
  if (verify !== undefined) return createHookFunctions(verify, clock)
  const socket = socketOfHook(config)
  return socket === undefined ? undefined : createHookSocket(socket, clock)
}
