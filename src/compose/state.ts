import { randomBytes } from 'node:crypto'
import type { Config } from '../config/schema.ts'
import {
  createDevicePassword,
  type DevicePassword,
  type DevicePasswordEvents,
  type RememberedPassword,
} from '../password/device-source.ts'
import { openPasswordSource, type PasswordSourceEvents } from '../password/source.ts'
import type { Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import type { SignIn } from '../sign-in/sign-in.ts'
import type { Clock } from '../system/clock.ts'
import { reasonOf } from '../system/node-permission.ts'
import { isBug, SetupError } from '../system/setup-error.ts'
import { openJournal } from '../tokens/journal.ts'
import { createMemoryJournal, type TokenJournal } from '../tokens/token-journal.ts'
import { createTokenStore, type TokenStore } from '../tokens/token-store.ts'

/** The password and the tokens given for it, which stand and fall together (C8). */
export interface State {
  readonly verify: DevicePassword['verify']
  readonly tokens: TokenStore
  close(): void
}

export interface StateDependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly signIn: SignIn | undefined
  /** What was admitted under these grants must be broken off. */
  readonly onRevoked: (grants: readonly string[]) => void
  /** The password file has changed, or can be read again. */
  readonly onPasswordRead: () => void
}

/** Where the journal keeps the password's fingerprint, and the salt it was made with. */
const FINGERPRINT = 'password_fingerprint'
const SALT = 'password_salt'

const SWEEP_INTERVAL = 1_000

/** Opens the password source and the token store, and drops the stored tokens if the password changed meanwhile. */
export async function openState(config: Config, deps: StateDependencies): Promise<State> {
  const { clock, log, metrics } = deps
  const journal = openTokenJournal(config, deps)
  // Tokens that a restart forgets need no mark of the password that they were given for.
  const durable = config.tokens.store === 'file'
  const tokens = createTokenStore({
    policy: config.tokens,
    clock,
    random: randomBytes,
    journal,
    listener: {
      issued: (grant) => metrics.tokensIssued(grant, 1),
      revoked(grants, reason) {
        metrics.tokensRevoked(reason, grants.length)
        log.warn({ grants: grants.length, reason }, 'tokens revoked')
        deps.onRevoked(grants)
      },
      evicted(kind, count) {
        metrics.tokensEvicted(kind, count)
        log.warn({ kind, count }, 'tokens evicted: the store is full, see tokens.capacity')
      },
    },
  })

  /** Settles when the journal knows which password holds. */
  let remembered = Promise.resolve()
  const reported = (remembering: Promise<void>): Promise<void> =>
    remembering.catch((error: unknown) =>
      log.error({ err: error }, 'the password fingerprint could not be kept'),
    )
  const learned = (): void => {
    if (durable) remembered = remembered.then(() => reported(rememberPassword(journal, password)))
  }
  const password = await openPassword(config, deps, readRemembered(journal), {
    changed() {
      tokens.revoke({ all: true }, 'password_changed')
      log.warn('the password has changed')
      deps.onPasswordRead()
      learned()
    },
    learned,
    unreadable: (reason) => {
      metrics.storeFailed('password', 'read')
      log.error({ reason }, 'the password source cannot be used; the last good password holds')
    },
    restored() {
      log.info('the password source can be used again')
      deps.onPasswordRead()
    },
  }).catch((error: unknown) => {
    journal.close()
    throw error
  })
  if (durable && holdsTokens(tokens)) {
    if (!(await isRemembered(journal, password))) {
      tokens.revoke({ all: true }, 'password_changed')
      await rememberPassword(journal, password)
    }
  } else if (durable) {
    // Nothing to take back: only the first who logs in has to wait for the fingerprint.
    remembered = reported(
      isRemembered(journal, password).then((known) =>
        known ? undefined : rememberPassword(journal, password),
      ),
    )
  }

  const timer = setInterval(() => tokens.sweep(), SWEEP_INTERVAL).unref()
  return {
    tokens,
    /** No token is given for a password before the journal knows of it, or a restart would take it for an old one's. */
    async verify(candidate) {
      for (;;) {
        const known = remembered
        await known
        const verdict = await password.verify(candidate)
        if (verdict !== 'right' || known === remembered) return verdict
      }
    },
    close() {
      clearInterval(timer)
      password.close()
      journal.close()
    },
  }
}

function holdsTokens(tokens: TokenStore): boolean {
  const { access, refresh } = tokens.counts()
  return access + refresh > 0
}

async function openPassword(
  { password }: Config,
  { clock, signIn }: StateDependencies,
  remembered: RememberedPassword | undefined,
  events: PasswordSourceEvents & DevicePasswordEvents,
): Promise<DevicePassword> {
  if (!('device' in password)) return openPasswordSource(password, { clock, events })
  if (signIn === undefined) throw new SetupError('password.device: upstream.auth must say how to sign in')
  return createDevicePassword({ signIn, events, remembered })
}

function openTokenJournal(config: Config, { clock, log, metrics }: StateDependencies): TokenJournal {
  if (config.tokens.store === 'memory') return createMemoryJournal()
  const opened = openJournal({
    dir: config.stateDir,
    clock,
    listener: {
      trouble(operation, error) {
        metrics.storeFailed('file', operation)
        // Whatever fails, clients are served; but a defect of ours is not to look like one of the disk.
        const cause = isBug(error) ? { err: error } : { reason: reasonOf(error) }
        log.error({ operation, ...cause }, 'token file: serving from memory')
      },
      recovered: () => log.info('token file: complete again'),
      setAside: (fault, path) =>
        log.error({ fault, path }, 'token file: unusable, set aside; starting empty'),
    },
  })
  if (opened.kind === 'locked') throw new SetupError(opened.message)
  return opened.journal
}

/**
 * Whether the stored tokens were given for the password that holds now. One that only the device knows is not known at
 * the start; the first grant tells.
 */
async function isRemembered(journal: TokenJournal, password: DevicePassword): Promise<boolean> {
  const known = readRemembered(journal)
  if (known === undefined) return false
  const fingerprint = await password.fingerprint(known.salt)
  return fingerprint === undefined || fingerprint === known.fingerprint
}

function readRemembered(journal: TokenJournal): RememberedPassword | undefined {
  const salt = journal.getMeta(SALT)
  const fingerprint = journal.getMeta(FINGERPRINT)
  if (salt === undefined || fingerprint === undefined) return undefined
  return { salt: Buffer.from(salt, 'base64url'), fingerprint }
}

async function rememberPassword(journal: TokenJournal, password: DevicePassword): Promise<void> {
  const salt = randomBytes(16)
  const fingerprint = await password.fingerprint(salt)
  if (fingerprint === undefined) return
  journal.setMeta(SALT, salt.toString('base64url'))
  journal.setMeta(FINGERPRINT, fingerprint)
}
