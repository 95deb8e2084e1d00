import { randomBytes } from 'node:crypto'
import type { Config } from '../config/schema.ts'
import { nameOfGrant } from '../http/scope.ts'
import type { DevicePassword } from '../password/device-source.ts'
import { everySecond } from '../system/every-second.ts'
import { createGrantTable } from './grant-table.ts'
import { issuedOf } from './handout.ts'
import { createIssuing, type PasswordAgreement } from './issuing.ts'
import { openJournal } from './journal.ts'
import { journalLog } from './journal-log.ts'
import { comparePasswords, FINGERPRINT, SALT } from './journal-records.ts'
import { createMemoryBackend } from './memory-backend.ts'
import { openPassword, type PasswordDependencies } from './open-password.ts'
import { type End, grantsInFlight, type LiveRequests, PASSWORD_CHANGED } from './revocation.ts'
import { type Outlets, reportAbsent, sourceEvents, tokenEvents } from './state-events.ts'
import { createTokenStore } from './token-store.ts'

export interface LocalDependencies extends Outlets, PasswordDependencies {
  readonly live: LiveRequests
  /** Whether the configuration has this name; the empty name stands for `password`. */
  readonly hasName: (name: string) => boolean
  /** Called when the password has changed or is gone, and when its source can be read again. */
  readonly onPasswordRead: () => void
}

/** Opens the password source and the token store of this process. Revokes the stored tokens if the password changed since the last run. */
export async function openLocalState(config: Config, deps: LocalDependencies) {
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

  /** @param name of a password that has changed; empty for `password` */
  const revokeOf = (name: string): void => {
    tokens.revoke(name === '' ? { all: true } : { name }, PASSWORD_CHANGED)
  }

  const salt = journal?.getMeta(SALT) ?? randomBytes(16).toString('base64url')
  /** Resolves when the journal has the fingerprint of the present password; undefined if the journal may lack it. */
  let settling: Promise<void> | undefined

  /** Revokes the tokens of each name whose password is gone or differs from the one in the journal. Then saves the present fingerprints. */
  async function settle(fingerprint: DevicePassword['fingerprint']): Promise<void> {
    if (journal === undefined) return
    // The tokens of the former password leave the journal before the new fingerprint enters it: a restart in between would accept the rest.
    await backend.removed()
    const { generation } = password
    const text = await fingerprint(Buffer.from(salt, 'base64url'))
    if (generation !== password.generation) return settle(fingerprint)
    // With `password.device`, the password is unknown until the first login; with a hook, until that answers.
    if (text === undefined) return
    const stored = journal.getMeta(FINGERPRINT)
    if (text === stored) return
    const isSame = comparePasswords(text, stored ?? '', heir)
    const grants = [...tokens.grants().map(({ id }) => id), ...grantsInFlight(live)]
    for (const name of new Set(grants.map(nameOfGrant))) if (!isSame(name)) revokeOf(name)
    await backend.removed()
    if (generation !== password.generation) return settle(fingerprint)
    journal.setMeta(SALT, salt)
    journal.setMeta(FINGERPRINT, text)
  }

  function settleBy(fingerprint: DevicePassword['fingerprint']): Promise<void> {
    settling = settle(fingerprint)
    settling.catch(() => {
      settling = undefined
    })
    return settling
  }
  const settled = (): Promise<void> => settling ?? settleBy(password.fingerprint)

  const { password, replace } = await openPassword(config, deps, {
    ...sourceEvents(deps, (name) => {
      revokeOf(name)
      settling = undefined
    }),
    learned: settleBy,
  }).catch((error: unknown) => {
    journal?.close()
    throw error
  })
  reportAbsent(deps, password.state())
  // Without tokens, the first login saves the fingerprint: its derivation takes 15 ms.
  if (tokens.grants().length > 0) await settled()

  /**
   * No token is issued before the journal holds the fingerprint of the password: a restart would take the token for one of an earlier
   * password and revoke it.
   */
  const agreement: PasswordAgreement = {
    settle: settled,
    async present() {
      await settled()
      return { kind: 'agreed', generation: password.generation, epoch: '' }
    },
  }
  const { logIn, handOut } = createIssuing({ ...deps, password, agreement, tokens })
  const end: End = (which, reason) => {
    tokens.revoke(which, reason)
    return true
  }
  const sweeping = everySecond(clock, () => tokens.sweep())
  return {
    tokens,
    password: { state: password.state, replace },
    end,
    issued: () => issuedOf(backend.issued()),
    logIn,
    handOut,
    unsaved: () => journal?.unsaved(),
    setAsideAt: () => journal?.setAsideAt(),
    copiedAt: () => journal?.copiedAt(),
    async close(): Promise<void> {
      sweeping.close()
      password[Symbol.dispose]()
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
