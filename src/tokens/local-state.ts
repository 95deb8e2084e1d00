import { randomBytes } from 'node:crypto'
import { checkedByDevice, passwordSources } from '../config/password-fields.ts'
import type { Config } from '../config/schema.ts'
import { nameOfGrant, namesInText } from '../http/scope.ts'
import {
  createDevicePassword,
  type DevicePassword,
  type DevicePasswordEvents,
  type StoredFingerprint,
} from '../password/device-source.ts'
import { openPasswords, type PasswordsEvents } from '../password/sources.ts'
import { everySecond } from '../system/clock.ts'
import { isBug, reasonOf, SetupError } from '../system/setup-error.ts'
import { openJournal, type TokenJournal } from './journal.ts'
import { type State, type StateDependencies, sourceEvents, tokenEvents } from './state.ts'
import { JOURNAL_OPERATIONS } from './token-journal.ts'
import { createTokenStore } from './token-store.ts'

/** The keys of the journal for the fingerprint of the password and for its salt. */
const FINGERPRINT = 'password_fingerprint'
const SALT = 'password_salt'

const SET_ASIDE = 'token file: unusable, set aside; starting empty'
const SET_ASIDE_UNREAD =
  'token file: set aside, because it could not be opened at the start and its tokens are unknown; they have to log in again'
const FROM_MEMORY = 'token file: serving from memory'
/** After a failed flush the file stays in use. */
const NOT_FLUSHED = 'token file: could not be flushed; a power cut may lose the latest tokens'

/** Opens the password source and the token store of this process. Revokes the stored tokens if the password changed since the last run. */
export async function openLocalState(config: Config, deps: StateDependencies): Promise<State> {
  const { clock, log } = deps
  const events = tokenEvents(deps)
  const journal = openTokenJournal(config, deps)
  const heir = heirOf(config)
  const tokens = createTokenStore({
    policy: config.tokens,
    clock,
    random: randomBytes,
    journal,
    heir,
    listener: {
      ...events,
      revoked(grants, reason) {
        events.revoked(grants.length, reason)
        deps.live.cut(grants)
      },
    },
  })

  /** @param name of a password that has changed; empty for `password` */
  const revokeOf = (name: string): void => {
    tokens.revoke(name === '' ? { all: true } : { name }, 'password_changed')
  }

  /** Whether the journal may lack the fingerprint of the valid password. */
  let isDue = true
  let saving = Promise.resolve()
  const learned = (): void => {
    isDue = true
  }
  /**
   * Resolves when the journal holds it. The first login derives it: without tokens none is needed, and it takes 15 ms. Tokens in memory
   * do not survive a restart, so they need none.
   */
  const saved = (): Promise<void> => {
    if (!isDue || journal === undefined) return saving
    isDue = false
    const report = (error: unknown): void => {
      isDue = true
      log.error({ err: error }, 'the password fingerprint could not be saved')
    }
    saving = saving.then(() => saveFingerprint(journal, password)).catch(report)
    return saving
  }
  const stored = journal && readFingerprint(journal)
  const password = await openPassword(config, deps, stored, {
    ...sourceEvents(deps, (name) => {
      revokeOf(name)
      learned()
    }),
    learned,
  }).catch((error: unknown) => {
    journal?.close()
    throw error
  })
  const restored = new Set(tokens.grants().map(({ id }) => nameOfGrant(id)))
  if (restored.size > 0) {
    const { unchanged, isSaved } = await comparePrints(stored, password, heir)
    isDue = !isSaved
    for (const name of restored) if (!unchanged.has(name)) revokeOf(name)
  }

  const sweeping = everySecond(() => tokens.sweep())
  return {
    tokens,
    password,
    /**
     * Issues no token before the journal holds the fingerprint of the password. Otherwise a restart would take the token for one
     * of an earlier password and revoke it.
     */
    async logIn(candidate, client, grantType) {
      for (;;) {
        const verified = await password.verify(candidate, client.key)
        if ('unavailable' in verified) return verified
        const { result, generation, name = '' } = verified
        if (result === 'right') await saved()
        if (generation !== password.generation) continue
        if (result !== 'right') return result
        return deps.hasName(name) ? tokens.issue(client.address, grantType, name) : 'wrong'
      }
    },
    unsaved: () => journal && tokens.unsaved(),
    storeUp: () => undefined,
    troubles: () => [],
    async close() {
      sweeping.close()
      password.close()
      journal?.close()
    },
  }
}

/** The name of the tokens that were issued for `password`: `admin`, or the only one. Empty if no name has them. */
function heirOf({ passwords = [] }: Config): string {
  const only = passwords.length === 1 ? passwords[0] : undefined
  return (passwords.find(({ name }) => name === 'admin') ?? only)?.name ?? ''
}

function openTokenJournal(
  config: Config,
  { clock, log, metrics }: StateDependencies,
): TokenJournal | undefined {
  if (config.tokens.store === 'memory') return undefined
  metrics.storeOpened('file', JOURNAL_OPERATIONS)
  return openJournal({
    dir: config.stateDir,
    clock,
    listener: {
      failed(operation, error) {
        metrics.storeFailed('file', operation)
        // The log distinguishes a bug from a disk error.
        const cause = isBug(error) ? { err: error } : { reason: reasonOf(error) }
        log.error({ operation, ...cause }, operation === 'flush' ? NOT_FLUSHED : FROM_MEMORY)
      },
      recovered: () => log.info('token file: complete again'),
      setAside: (fault, path) =>
        log.error({ fault, path }, fault === 'unread' ? SET_ASIDE_UNREAD : SET_ASIDE),
    },
  })
}

/**
 * The names whose stored tokens were issued for the password that is valid now, and whether the journal has all fingerprints. With
 * `password.device` the password is unknown at the start: the first grant compares the fingerprints.
 */
async function comparePrints(
  stored: StoredFingerprint | undefined,
  password: DevicePassword,
  heir: string,
): Promise<{ readonly unchanged: ReadonlySet<string>; readonly isSaved: boolean }> {
  if (stored === undefined) return { unchanged: new Set(), isSaved: false }
  const text = await password.fingerprint(stored.salt)
  if (text === undefined) return { unchanged: new Set(['']), isSaved: true }
  const before = namesInText(stored.fingerprint)
  const unnamed = before.get('')
  if (unnamed !== undefined) before.set(heir, unnamed)
  const unchanged = [...namesInText(text)].filter(([name, print]) => before.get(name) === print)
  return { unchanged: new Set(unchanged.map(([name]) => name)), isSaved: text === stored.fingerprint }
}

function readFingerprint(journal: TokenJournal): StoredFingerprint | undefined {
  const salt = journal.getMeta(SALT)
  const fingerprint = journal.getMeta(FINGERPRINT)
  if (salt === undefined || fingerprint === undefined) return undefined
  return { salt: Buffer.from(salt, 'base64url'), fingerprint }
}

async function saveFingerprint(journal: TokenJournal, password: DevicePassword): Promise<void> {
  const salt = randomBytes(16)
  const fingerprint = await password.fingerprint(salt)
  if (fingerprint === undefined) return
  journal.setMeta(SALT, salt.toString('base64url'))
  journal.setMeta(FINGERPRINT, fingerprint)
}

/** Opens the password source. Rejects with `SetupError` if it cannot be used. */
async function openPassword(
  config: Config,
  { clock, signIn, hasName }: StateDependencies,
  stored: StoredFingerprint | undefined,
  events: PasswordsEvents & DevicePasswordEvents,
): Promise<DevicePassword> {
  if (!checkedByDevice(config)) return openPasswords(passwordSources(config), { clock, events, hasName })
  if (signIn === undefined)
    throw new SetupError('needs upstream.auth, which defines how to sign in', { key: 'password.device' })
  return createDevicePassword({ signIn, events, stored })
}
