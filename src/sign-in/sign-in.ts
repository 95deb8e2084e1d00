import { hash } from 'node:crypto'
import { DeviceFault } from '../device/failure.ts'
import type { OwnResponse } from '../device/own-request.ts'
import type { Fields } from '../http/fields.ts'
import type { UpstreamFailure } from '../http/refusal.ts'
import { createBoundedQueue } from '../system/bounded-queue.ts'
import type { Clock } from '../system/clock.ts'
import type { Credentials, LoginResult, RequestLine, Scheme, Session } from './scheme.ts'

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
  /** A session could not be ended at the device, once for each reason. The reason holds no secret. */
  readonly notSignedOut: (reason: string) => void
}

/**
 * A refused session causes a login. If the request is refused again after it, the account may not use that path. For this
 * long (ms) refusals then cause no further login.
 */
const LOGIN_INTERVAL = 5_000

/** In ms. Each further refusal doubles the pause: devices lock an account after a few failures in some minutes. */
const SHORTEST_PAUSE = 30_000
const LONGEST_PAUSE = 960_000

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
  let reported: string | undefined
  let running: Promise<UpstreamFailure | undefined> | undefined
  let noLoginBefore = 0
  /** Not used any more, but not yet ended at the device: many devices have four sessions and no more. */
  let retired: Session | undefined
  let closed = false
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

  function refuse(password: string): void {
    retire()
    if (adopted === password) adopted = undefined
    noLoginBefore = 0
    events.refused(pause(password))
    for (const listener of listeners) listener()
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
    await endRetired()
    const password = readPassword === undefined ? adopted : await readPassword().catch(unreadable)
    if (closed || password === undefined) return undefined
    const digest = hash('sha256', password)
    if (paused?.digest === digest && clock.monotonic() < paused.until) return undefined
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
    /** Signs in if there is no session. Concurrent callers share one login. Returns the failure if the device did not respond. */
    async ready(): Promise<UpstreamFailure | undefined> {
      if (current?.session.expired === true) retire()
      return current === undefined ? signInOnce() : undefined
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
    /** Called when the device responded with a challenge. `mayLogin`: this request has not caused a login yet. */
    async renew(
      response: OwnResponse,
      sent: SentCredentials | undefined,
      mayLogin: boolean,
    ): Promise<Renewal> {
      if (sent !== undefined && current?.session === sent.session) {
        const { session, password } = current
        const nonce = session.renew?.(response, sent.nonce)
        if (nonce !== undefined) return { kind: 'new-nonce', nonce }
        if (!session.proven) refuse(password)
        const now = clock.monotonic()
        if (!session.proven || !mayLogin || now < noLoginBefore) return REFUSED
        noLoginBefore = now + LOGIN_INTERVAL
        retire()
      }
      if (current === undefined) await signInOnce()
      return current !== undefined && mayLogin ? SIGNED_IN : REFUSED
    },
    /** Called when the device accepted a request that it had refused before the login. */
    loginHelped(): void {
      noLoginBefore = 0
    },
    /** Called when the device's response is no challenge. */
    accepted(request: RequestLine, response: OwnResponse, sent: SentCredentials | undefined): void {
      if (sent === undefined || current?.session !== sent.session) return
      const { session, nonce } = sent
      if (!session.proven) paused = undefined
      session.proven = true
      session.accepted?.(request, response, nonce)
    },
    /** Removes the secrets of the sidecar's session from the header of a response that goes to the client. */
    conceal: (fields: Fields, sent: SentCredentials | undefined): Fields =>
      (sent ?? current)?.session.conceal?.(fields) ?? fields,
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
