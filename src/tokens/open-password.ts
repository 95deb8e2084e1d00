import { checkedByDevice, passwordSources, socketOfHook } from '../config/password-fields.ts'
import type { Config } from '../config/schema.ts'
import {
  createDevicePassword,
  type DevicePassword,
  type DevicePasswordEvents,
} from '../password/device-source.ts'
import type { Hook } from '../password/hook.ts'
import { createHookFunctions } from '../password/hook-functions.ts'
import { createHookSocket } from '../password/hook-socket.ts'
import { type HookPasswordEvents, openHookPassword } from '../password/hook-source.ts'
import { openPasswords, type PasswordsEvents, type Replacement } from '../password/sources.ts'
import { SetupError } from '../system/setup-error.ts'
import type { StateDependencies } from './state.ts'

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
  deps: StateDependencies,
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
function hookOf(config: Config, { clock, verify }: StateDependencies): Hook | undefined {
  if (verify !== undefined) return createHookFunctions(verify, clock)
  const socket = socketOfHook(config)
  return socket === undefined ? undefined : createHookSocket(socket, clock)
}
