import { DeviceFault } from '../device/failure.ts'
import type { UpstreamFailure } from '../http/refusal.ts'
import type { Clock } from '../system/clock.ts'
import type { LoginBudget } from './login-budget.ts'
import type { PasswordRecord } from './password-record.ts'
import type { PresentSession } from './present-session.ts'
import type { LoginResult, Scheme, Session } from './scheme.ts'
import type { SessionLife } from './session-life.ts'

/** The device did not respond, or its response does not say whether the password is right. */
interface FailedCheck {
  readonly kind: 'failed'
  readonly failure: UpstreamFailure
}

export type PasswordCheck =
  /** `adopt`: from now on requests use this password, and the session that the check opened. `discard`: they use neither. */
  | { readonly kind: 'right'; readonly adopt: () => void; readonly discard: () => void }
  | { readonly kind: 'wrong' }
  | { readonly kind: 'stopping' }
  | FailedCheck

export interface LoginEvents {
  readonly signedIn: () => void
  /** This password is not tried again for `pause` ms, so that the device does not lock the account. */
  readonly refused: (pause: number) => void
  /** Signing in cannot work with this configuration. The reason holds no secret. */
  readonly unusable: (reason: string) => void
}

interface LoginsOptions {
  readonly scheme: Scheme
  /**
   * Reads the password for every login, so that a changed one takes effect when the device refuses the old one. The message of its
   * rejection is safe to log. Undefined: the password is the one that was adopted last.
   */
  readonly readPassword: (() => Promise<string>) | undefined
  /** The password that was adopted before a reload. */
  readonly adopted: string | undefined
  readonly clock: Clock
  readonly present: PresentSession
  readonly life: SessionLife
  readonly budget: LoginBudget
  readonly record: PasswordRecord
  readonly events: LoginEvents
}

/** While the password is unreadable or paused, it is read again at most once in this time (ms), not for each request. */
const READ_INTERVAL = 1_000

export type Logins = ReturnType<typeof createLogins>

/** Logs in at the device, one login at a time, and decides which password is tried. */
export function createLogins(options: LoginsOptions) {
  const { scheme, readPassword, clock, present, life, budget, record, events } = options
  const onRefused: (() => void)[] = []
  let { adopted } = options
  /** The password is not read again before this time (ms on the monotonic clock). */
  let noReadBefore = Number.NEGATIVE_INFINITY
  /** The last reason that was reported. */
  let reported: string | undefined
  let running: Promise<UpstreamFailure | undefined> | undefined
  let closed = false

  async function signIn(): Promise<UpstreamFailure | undefined> {
    const failure = await replaceSession()
    if (closed) present.forgetChallenged()
    else present.resumeChallenged()
    return present.inUse === undefined ? failure : undefined
  }

  async function replaceSession(): Promise<UpstreamFailure | undefined> {
    await present.endRetired()
    if (clock.monotonic() < noReadBefore) return undefined
    const password = readPassword === undefined ? adopted : await readPassword().catch(unreadable)
    if (closed) return undefined
    if (password === undefined || record.isPaused(password)) {
      if (readPassword !== undefined) noReadBefore = clock.monotonic() + READ_INTERVAL
      return undefined
    }
    if (present.inUse?.doubted === true) present.retire()
    await present.endRetired()
    if (closed) return undefined
    const login = await tried(password)
    if (login.kind === 'failed') {
      // A failed login says nothing about the account, so the next refusal may cause another login.
      budget.allowNext()
      return login.failure
    }
    // Another password was adopted during this login, so its result no longer matters.
    if (readPassword === undefined && adopted !== password) {
      if (login.kind === 'right') present.discard(login.session)
      return undefined
    }
    if (login.kind === 'right') use(login.session, password)
    else if (login.kind === 'wrong') refuse(password)
    else {
      record.pause(password)
      report(login.reason)
    }
    return undefined
  }

  async function tried(password: string): Promise<LoginResult | FailedCheck> {
    try {
      return await scheme.login(password)
    } catch (error) {
      if (error instanceof DeviceFault) return { kind: 'failed', failure: error.failure }
      throw error
    }
  }

  function use(session: Session, password: string): void {
    present.use(session, password)
    life.began()
    noReadBefore = clock.monotonic()
    if (record.hasWorked(password)) session.proven = true
    if (session.proven) record.endPause()
    reported = undefined
    events.signedIn()
  }

  function refuse(password: string): void {
    present.retire()
    present.forgetChallenged()
    record.forgetWorked()
    if (adopted === password) adopted = undefined
    budget.allowNext()
    events.refused(record.pause(password))
    for (const listener of onRefused) listener()
  }

  function unreadable(error: Error): undefined {
    report(error.message)
  }

  /** Reports a reason once, not for every request. */
  function report(reason: string): void {
    if (reason !== reported) events.unusable(reason)
    reported = reason
  }

  return {
    /** The password that the device accepted last, if no file has it. */
    get adopted(): string | undefined {
      return adopted
    },
    isRunning: (): boolean => running !== undefined,
    /**
     * Opens a session. Concurrent callers share one login. Returns the failure if there is no session because the device did not respond.
     */
    signIn(): Promise<UpstreamFailure | undefined> {
      running ??= signIn().finally(() => {
        running = undefined
      })
      return running
    },
    /**
     * A response to a client refused a session that had never worked. The password is not tried again for a while. The session stays in
     * use, because one path that refuses every account must not stop the sign-in for all paths.
     */
    doubt(inUse: NonNullable<PresentSession['inUse']>): void {
      inUse.doubted = true
      budget.allowNext()
      events.refused(record.pause(inUse.password))
    },
    /**
     * Tries a password at the device, once. While the sidecar stops it tries none, because the new session would stay open at the device.
     */
    async check(password: string): Promise<PasswordCheck> {
      if (closed) return { kind: 'stopping' }
      await present.endRetired()
      const login = await tried(password)
      if (login.kind === 'unusable') {
        report(login.reason)
        return { kind: 'failed', failure: 'destination_unavailable' }
      }
      if (login.kind !== 'right') return login
      const { session } = login
      const discard = (): void => present.discard(session)
      if (closed) {
        discard()
        await present.endRetired()
        return { kind: 'stopping' }
      }
      const adopt = (): void => {
        adopted = password
        budget.allowNext()
        use(session, password)
      }
      return { kind: 'right', adopt, discard }
    },
    /** Calls back when the device refuses the password, the configured one or the adopted one. */
    onRefused(listener: () => void): void {
      onRefused.push(listener)
    },
    async signOut(): Promise<void> {
      closed = true
      // A bug in this login is reported by the request that waits for it.
      await Promise.allSettled([running])
      present.retire()
      await present.endRetired()
    },
  }
}
