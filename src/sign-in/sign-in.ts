import { hash } from 'node:crypto'
import { DeviceFault } from '../device/failure.ts'
import type { OwnResponse } from '../device/own-request.ts'
import type { Fields } from '../http/fields.ts'
import type { UpstreamFailure } from '../http/refusal.ts'
import { createBoundedQueue } from '../system/bounded-queue.ts'
import type { Clock } from '../system/clock.ts'
import type { Credentials, LoginResult, RequestLine, Scheme, Session } from './scheme.ts'
import { type SessionNames, withoutSession } from './session-cookies.ts'

/** The credentials that were sent with one request. They show `renew` and `accepted` what the response is about. */
export interface SentCredentials extends Credentials {
  readonly session: Session
}

/** The device did not respond, or its response says neither right nor wrong. */
interface FailedCheck {
  readonly kind: 'failed'
  readonly failure: UpstreamFailure
}

export type PasswordCheck =
  /** `adopt`: from now on requests use this password, and the session that the check opened. */
  { readonly kind: 'right'; readonly adopt: () => void } | { readonly kind: 'wrong' } | FailedCheck

/** Whether it makes sense to repeat the request: after a login, or with the nonce of the challenge. */
export type Renewal =
  | { readonly kind: 'signed-in' }
  | { readonly kind: 'new-nonce'; readonly nonce: string }
  | { readonly kind: 'refused' }

export interface SignInEvents {
  readonly signedIn: () => void
  /** This password is not tried again for `pause` ms, so that the device does not lock the account. */
  readonly refused: (pause: number) => void
  /** Signing in cannot work with this configuration. The reason holds no secret. */
  readonly unusable: (reason: string) => void
  /** Responses to clients change the session so often that not each of them causes a login. Reported once. */
  readonly changing: () => void
  /** A session could not be ended at the device, once for each reason. The reason holds no secret. */
  readonly notSignedOut: (reason: string) => void
}

/**
 * A refused session causes a login. If the request is refused again after it, the account may not use that path. For this
 * long (ms) refusals then cause no further login.
 */
const LOGIN_INTERVAL = 5_000

/** A session that responses to clients change causes at most this many logins in a row, and from then on one in `LOGIN_INTERVAL`. */
const MOST_CHANGES = 3

/** A session that was seen alive within this time (ms) is not looked at. */
const SHORTEST_LIFE = 5_000

/** In ms. Each further refusal doubles the pause: devices lock an account after a few failures in some minutes. */
const SHORTEST_PAUSE = 30_000
const LONGEST_PAUSE = 960_000

/** While no login can come of it, the password is read again at most once in this time (ms), not for each request. */
const READ_INTERVAL = 1_000

/** One request at a time. A request that has waited for `maxWait` (ms) is sent anyway. */
const REPEAT_QUEUE = { inside: 1, waiting: Number.POSITIVE_INFINITY, maxWait: 2_000 }

const REFUSED = { kind: 'refused' } as const
const SIGNED_IN = { kind: 'signed-in' } as const

export type SignIn = ReturnType<typeof createSignIn>

/**
 * The sidecar's own account at the device.
 *
 * @param readPassword reads the password for every login, so that a changed one takes effect when the device refuses the old one. The
 * message of a failure is safe to log. Undefined: the password is the one that was adopted last
 */
export function createSignIn(
  scheme: Scheme,
  readPassword: (() => Promise<string>) | undefined,
  clock: Clock,
  events: SignInEvents,
) {
  const listeners: (() => void)[] = []
  let adopted: string | undefined
  let current: { readonly session: Session; readonly password: string } | undefined
  /** The names of the last session. A client's own session must not take its place while there is none. */
  let names = scheme.names
  /** The digest of the password whose session worked last. From then on only a login refuses it. */
  let worked: string | undefined
  /** A session that a response to a client refused before it ever worked: the password may be wrong, or that path is closed to it. */
  let doubted: Session | undefined
  /** When the present session was last seen alive (ms on the monotonic clock). */
  let seenAt = 0
  /** The longest pause (ms) after which a session of this device was still alive. */
  let survived = SHORTEST_LIFE
  /** False once a look has called a session over that had just begun: looks then say nothing at this device. */
  let looks = scheme.look !== undefined
  let looking: Promise<UpstreamFailure | undefined> | undefined
  /** Each login because of a change moves this time on by `LOGIN_INTERVAL` (ms on the monotonic clock): see `takeChange`. */
  let changesUntil = 0
  let toldChanging = false
  let reported: string | undefined
  let running: Promise<UpstreamFailure | undefined> | undefined
  let noLoginBefore = 0
  /**
   * The session that a response to a client refused, until a login replaces it. It is used again if that login brings no session: the path
   * may be closed to every account, and the device may answer 429 to a further login.
   */
  let challenged: typeof current
  /** Not used any more, but not yet ended at the device: many devices have four sessions and no more. */
  let retired: Session | undefined
  let closed = false
  /** The password is not read again before this time (ms on the monotonic clock). */
  let noReadBefore = Number.NEGATIVE_INFINITY
  /** A refused password is not tried again before `until` (ms on the monotonic clock). Memory keeps no more than its digest. */
  let paused: { readonly digest: string; readonly length: number; readonly until: number } | undefined

  function retire(): void {
    retired = current?.session ?? retired
    current = undefined
  }

  async function endRetired(): Promise<void> {
    const session = retired
    retired = undefined
    await session?.end?.()
  }

  function useSession(session: Session, password: string): void {
    current = { session, password }
    names = session.names ?? scheme.names
    seenAt = clock.monotonic()
    noReadBefore = seenAt
    if (worked === hash('sha256', password)) session.proven = true
    if (session.proven) paused = undefined
    reported = undefined
    events.signedIn()
  }

  /** Reports a reason once, not for every request. */
  function report(reason: string): void {
    if (reason !== reported) events.unusable(reason)
    reported = reason
  }

  /** Returns the length of the pause (ms). */
  function pause(password: string): number {
    const digest = hash('sha256', password)
    const length = paused?.digest === digest ? Math.min(paused.length * 2, LONGEST_PAUSE) : SHORTEST_PAUSE
    paused = { digest, length, until: clock.monotonic() + length }
    return length
  }

  function isPaused(password: string): boolean {
    return paused?.digest === hash('sha256', password) && clock.monotonic() < paused.until
  }

  /** A login refused the password. */
  function refuse(password: string): void {
    retire()
    challenged = undefined
    worked = undefined
    if (adopted === password) adopted = undefined
    noLoginBefore = 0
    events.refused(pause(password))
    for (const listener of listeners) listener()
  }

  /**
   * A response to a client refused a session that never worked. The password is not tried again for a while, but the session stays in use:
   * one path that refuses every account must not stop the sign-in for all.
   */
  function doubt(session: Session, password: string): void {
    doubted = session
    noLoginBefore = 0
    events.refused(pause(password))
  }

  function seenAlive(): void {
    const now = clock.monotonic()
    survived = Math.max(survived, now - seenAt)
    seenAt = now
  }

  function seenOver(): void {
    if (clock.monotonic() - seenAt <= survived) survived = SHORTEST_LIFE
  }

  /** Whether a changed session may cause a login now. Bounded: with some devices the next response changes the next session. */
  function takeChange(): boolean {
    const now = clock.monotonic()
    const from = Math.max(changesUntil, now)
    const allowed = from - now < MOST_CHANGES * LOGIN_INTERVAL
    if (allowed) changesUntil = from + LOGIN_INTERVAL
    else if (!toldChanging) {
      toldChanging = true
      events.changing()
    }
    return allowed
  }

  function retireIfOver(): void {
    const session = current?.session
    if (session?.expired === true || (session?.changed === true && takeChange())) retire()
  }

  /** Looks whether the device still takes the session, and signs in if not. Returns the failure if that login gets no response. */
  async function look(): Promise<UpstreamFailure | undefined> {
    const session = current?.session
    if (session === undefined || (await isAlive(session)) !== false || current?.session !== session)
      return undefined
    seenOver()
    retire()
    const failure = await signInOnce()
    // Without a path that needs a login, the device may lead every client to the login page there.
    if (current !== undefined && (await isAlive(current.session)) === false) looks = false
    return failure
  }

  async function isAlive(session: Session): Promise<boolean | undefined> {
    try {
      const alive = await scheme.look?.(session)
      if (alive === true && current?.session === session) seenAlive()
      return alive
    } catch (error) {
      // The request itself will show what is wrong with the device.
      if (error instanceof DeviceFault) return undefined
      throw error
    }
  }

  async function tried(password: string): Promise<LoginResult | FailedCheck> {
    try {
      return await scheme.login(password)
    } catch (error) {
      if (error instanceof DeviceFault) return { kind: 'failed', failure: error.failure }
      throw error
    }
  }

  async function signIn(): Promise<UpstreamFailure | undefined> {
    const failure = await replaceSession()
    if (!closed) current ??= challenged
    challenged = undefined
    return current === undefined ? failure : undefined
  }

  async function replaceSession(): Promise<UpstreamFailure | undefined> {
    await endRetired()
    if (clock.monotonic() < noReadBefore) return undefined
    const password = readPassword === undefined ? adopted : await readPassword().catch(unreadable)
    if (closed) return undefined
    if (password === undefined || isPaused(password)) {
      if (readPassword !== undefined) noReadBefore = clock.monotonic() + READ_INTERVAL
      return undefined
    }
    if (current?.session === doubted) retire()
    await endRetired()
    if (closed) return undefined
    const login = await tried(password)
    if (login.kind === 'failed') {
      // Such a login says nothing about the account, so the next refusal may cause another one.
      noLoginBefore = 0
      return login.failure
    }
    // Another password was adopted during the login, so this one no longer matters.
    if (readPassword === undefined && adopted !== password) return undefined
    if (login.kind === 'right') useSession(login.session, password)
    else if (login.kind === 'wrong') refuse(password)
    else {
      pause(password)
      report(login.reason)
    }
    return undefined
  }

  function unreadable(error: Error): undefined {
    report(error.message)
  }

  function signInOnce(): Promise<UpstreamFailure | undefined> {
    running ??= signIn().finally(() => {
      running = undefined
    })
    return running
  }

  return {
    /**
     * Signs in if there is no session. Concurrent callers share one login. Returns the failure if the device did not respond.
     *
     * @param changes the request may change something, so it could not be repeated: a session that was not seen alive for as long as
     * sessions of this device have lived is looked at first
     */
    async ready(changes = false): Promise<UpstreamFailure | undefined> {
      retireIfOver()
      if (current === undefined || current.session === doubted) return signInOnce()
      if (!changes || !looks || clock.monotonic() - seenAt <= survived) return undefined
      looking ??= look().finally(() => {
        looking = undefined
      })
      const failure = await looking
      retireIfOver()
      return failure ?? (current === undefined ? signInOnce() : undefined)
    },
    /**
     * The credentials for this request; `undefined` while not signed in: the request is then sent without, and the device
     * decides. `nonce`: from the renewal, for a repeated request.
     */
    credentialsFor(request: RequestLine, nonce?: string): SentCredentials | undefined {
      if (current === undefined) return undefined
      const { session } = current
      return { ...session.credentialsFor(request, nonce), session }
    },
    isChallenge: scheme.isChallenge,
    /** Requests that are repeated with a new nonce wait here if the device accepts each nonce only once. */
    repeatQueue: createBoundedQueue(REPEAT_QUEUE),
    /**
     * Called when the device responded with a challenge.
     *
     * @param mayLogin this request has not caused a login yet
     * @param mayHaveActed the device may have acted on the request: it is not repeated, and the next request signs in
     */
    async renew(
      response: OwnResponse,
      sent: SentCredentials | undefined,
      mayLogin: boolean,
      mayHaveActed = false,
    ): Promise<Renewal> {
      if (sent !== undefined && current?.session === sent.session) {
        // No cookie of the session is for this path, so the response says nothing about the session.
        if (sent.fields.length === 0) return REFUSED
        const { session, password } = current
        const nonce = session.renew?.(response, sent.nonce)
        if (nonce !== undefined) return { kind: 'new-nonce', nonce }
        seenOver()
        if (!session.proven && session !== doubted) doubt(session, password)
        const now = clock.monotonic()
        if (!session.proven || !mayLogin) return REFUSED
        if (session.changed === true ? !takeChange() : now < noLoginBefore) return REFUSED
        noLoginBefore = now + LOGIN_INTERVAL
        // A session that the sidecar ends at the device before the login cannot be used again.
        const mayLive = session.end === undefined && session.changed !== true && session.expired !== true
        challenged = mayLive ? current : undefined
        retire()
      }
      if (mayHaveActed) return REFUSED
      if (current === undefined) await signInOnce()
      const isNew = current !== undefined && current.session !== sent?.session
      return isNew && mayLogin ? SIGNED_IN : REFUSED
    },
    /** Called when the device accepted a request that it had refused before the login. */
    loginHelped(): void {
      noLoginBefore = 0
    },
    /** Called when the device's response is no challenge. */
    accepted(request: RequestLine, response: OwnResponse, sent: SentCredentials | undefined): void {
      if (sent === undefined || current?.session !== sent.session) return
      const { session, nonce } = sent
      if (sent.fields.length > 0) {
        seenAlive()
        if (!session.proven) {
          paused = undefined
          doubted = undefined
          worked = hash('sha256', current.password)
          session.proven = true
        }
      }
      session.accepted?.(request, response, nonce, false)
    },
    /** The names under which the session travels, to remove what a client sends in its place. */
    names: (sent: SentCredentials | undefined): SessionNames => sent?.session.names ?? names,
    /** Removes the secrets of the sidecar's session from the header of a response that goes to the client. */
    conceal: (fields: Fields, sent: SentCredentials | undefined): Fields => {
      const own = sent?.session.names ?? names
      return own.cookies.size === 0 && own.headers.size === 0 ? fields : withoutSession(fields, own)
    },
    /** Tries a password at the device, once. */
    async check(password: string): Promise<PasswordCheck> {
      const login = await tried(password)
      if (login.kind === 'unusable') {
        report(login.reason)
        return { kind: 'failed', failure: 'destination_unavailable' }
      }
      if (login.kind !== 'right') return login
      const adopt = (): void => {
        adopted = password
        noLoginBefore = 0
        useSession(login.session, password)
      }
      return { kind: 'right', adopt }
    },
    /** Calls back when the device refuses the configured password, or the one that it accepted before. */
    onRefused(listener: () => void): void {
      listeners.push(listener)
    },
    async signOut(): Promise<void> {
      closed = true
      // A bug in it is reported by the request that waits for it.
      await Promise.allSettled([running])
      retire()
      await endRetired()
    },
  }
}
