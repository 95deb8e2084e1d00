import { checkedByDevice, passwordSources } from '../config/password-fields.ts'
import type { Config } from '../config/schema.ts'
import {
  createDevicePassword,
  type DevicePassword,
  type DevicePasswordEvents,
} from '../password/device-source.ts'
import { openPasswords, type PasswordsEvents } from '../password/sources.ts'
import { everySecond } from '../system/every-second.ts'
import { SetupError } from '../system/setup-error.ts'
import { createGrantTable } from './grant-table.ts'
import { issuedOf } from './handout.ts'
import { createIssuing } from './issuing.ts'
import { openJournal } from './journal.ts'
import { journalLog } from './journal-log.ts'
import { createMemoryBackend } from './memory-backend.ts'
import { reportAbsent, type State, type StateDependencies, sourceEvents, tokenEvents } from './state.ts'
import { createStoredPassword } from './stored-password.ts'
import { createTokenStore } from './token-store.ts'

/** Opens the password source and the token store of this process. Revokes the stored tokens if the password changed since the last run. */
export async function openLocalState(config: Config, deps: StateDependencies): Promise<State> {
  const { clock } = deps
  const policy = config.tokens
  const heir = heirOf(config)
  const table = createGrantTable(policy.capacity)
  const journal =
    policy.store === 'memory'
      ? undefined
      : openJournal({
          dir: config.stateDir,
          clock,
          listener: journalLog(config.stateDir, deps),
          table,
          policy,
          heir,
        })
  const listener = tokenEvents(deps)
  const { live } = deps
  const backend = createMemoryBackend({ policy, clock, journal, table, listener, live })
  const tokens = createTokenStore({ policy, backend, listener, live })

  const agreement = createStoredPassword({
    ...{ journal, tokens, live, heir, removed: backend.removed },
    generation: () => password.generation,
    fingerprint: (salt) => password.fingerprint(salt),
  })
  const password = await openPassword(config, deps, {
    ...sourceEvents(deps, agreement.changed),
    learned: agreement.learned,
  }).catch((error: unknown) => {
    journal?.close()
    throw error
  })
  reportAbsent(deps, password.state())
  // Without tokens, the first login saves the fingerprint: its derivation takes 15 ms.
  if (tokens.grants().length > 0) await agreement.settle()

  const { logIn, handOut } = createIssuing({ ...deps, password, agreement, tokens })
  const sweeping = everySecond(clock, () => tokens.sweep())
  return {
    tokens,
    password,
    end(which, reason) {
      tokens.revoke(which, reason)
      return true
    },
    issued: () => issuedOf(backend.issued()),
    logIn,
    handOut: (handout) => (checkedByDevice(config) ? 'checked-by-device' : handOut(handout)),
    unsaved: () => journal?.unsaved(),
    copiedAt: () => journal?.copiedAt(),
    store: () => undefined,
    troubles: () => [],
    async close() {
      sweeping.close()
      password.close()
      backend.close()
      journal?.close()
    },
  }
}

/**
 * The name that gets the tokens that were issued for `password`, before the configuration had `passwords`: `admin`, or the only name. Empty
 * if there is neither.
 */
function heirOf({ passwords = [] }: Config): string {
  const only = passwords.length === 1 ? passwords[0] : undefined
  return (passwords.find(({ name }) => name === 'admin') ?? only)?.name ?? ''
}

/** Opens the password source. Rejects with `SetupError` if it cannot be used. */
async function openPassword(
  config: Config,
  { clock, signIn, hashMemory: memory, precedence }: StateDependencies,
  events: PasswordsEvents & DevicePasswordEvents,
): Promise<DevicePassword> {
  if (!checkedByDevice(config))
    return openPasswords(passwordSources(config), { clock, events, memory, precedence })
  if (signIn === undefined)
    throw new SetupError('needs upstream.auth, which defines how to sign in', { key: 'password.device' })
  return createDevicePassword(clock, signIn, events, precedence)
}
