import { DeviceFault } from '../device/failure.ts'
import type { Answer } from '../device/own-request.ts'
import type { Fields } from '../http/fields.ts'
import type { UpstreamFailure } from '../http/refusal.ts'
import { type BoundedQueue, createBoundedQueue } from '../system/bounded-queue.ts'
import type { Clock } from '../system/clock.ts'
import { createPause } from './pause.ts'
import type { Login, RequestLine, Scheme, Session } from './scheme.ts'

/** Credentials as they went out with one request. */
export interface Shown {
  readonly fields: Fields
  /** Tells `renew` and `answered` which sign-in, and which turn of it, they were. */
  readonly session: Session
  readonly mark: string
}

/** `failed`: the device gave no answer, or none that says yes or no. */
export type Checked =
  /** `adopt`: from now on this password signs requests in, with the session that the check has just opened. */
  | { readonly kind: 'right'; readonly adopt: () => void }
  | { readonly kind: 'wrong' }
  | { readonly kind: 'failed'; readonly failure: UpstreamFailure }

/** The sidecar's own account at the device. */
export interface SignIn {
  /** Signs in where that is due, one login at a time however many wait. The failure where the device gave no answer. */
  ready(): Promise<UpstreamFailure | undefined>
  /**
   * What to send with this request; `undefined` while not signed in: then it goes as it is, and the device decides.
   * `mark`: of the renewal, for a request that is repeated.
   */
  credentialsFor(request: RequestLine, mark?: string): Shown | undefined
  /** Whether an answer of the device means "sign in first". */
  isChallenge(request: RequestLine, answer: Answer): boolean
  /** The device has answered a request with a challenge. `mayLogin`: no login was made on behalf of this request yet. */
  renew(answer: Answer, shown: Shown | undefined, mayLogin: boolean): Promise<Renewal>
  /** Where requests stand that are repeated with a new nonce, if the device takes each nonce once. */
  readonly line: BoundedQueue
  /** A request that was refused has been taken after a login. */
  helped(): void
  /** The device has answered with anything else. */
  answered(request: RequestLine, answer: Answer, shown: Shown | undefined): void
  /** The header of an answer for the client, less what belongs to the sidecar's own session. */
  conceal(fields: Fields, shown: Shown | undefined): Fields
  /** Tries a password at the device, once. */
  check(password: string): Promise<Checked>
  /** The device refuses the password that it took before, or that the settings name. */
  onRefused(listener: () => void): void
}

/** Whether repeating the request may succeed: after a login, or with what the refusal gave, shown under that mark. */
export type Renewal =
  | { readonly kind: 'signed-in' }
  | { readonly kind: 'turn'; readonly mark: string }
  | { readonly kind: 'refused' }

export interface SignInEvents {
  readonly signedIn: () => void
  /** No new attempt with this password for `pause` ms, so that a device that locks accounts is not brought to it. */
  readonly refused: (pause: number) => void
  /** Signing in cannot work as it is set up; the reason names no secret. */
  readonly unusable: (reason: string) => void
}

export interface SignInDependencies {
  readonly scheme: Scheme
  /**
   * Reads the password anew for every login, so that a changed one is found when the old one is refused; fails with a
   * message fit for a log. Without it, the password is the one adopted last.
   */
  readonly readPassword: (() => Promise<string>) | undefined
  readonly clock: Clock
  readonly events: SignInEvents
}

/**
 * A session that is refused is checked by a login. If that did not help the request, it is its path which is closed to
 * the account, and for so long (ms) no refusal leads to another login.
 */
const QUIET = 5_000

/** One after the other; behind one that takes its time, the next may as well be tried. */
const LINE = { inside: 1, waiting: Number.POSITIVE_INFINITY, patience: 2_000 }

const REFUSED = { kind: 'refused' } as const
const SIGNED_IN = { kind: 'signed-in' } as const

export function createSignIn({ scheme, readPassword, clock, events }: SignInDependencies): SignIn {
  const pause = createPause(clock)
  const listeners: (() => void)[] = []
  let adopted: string | undefined
  let current: Current | undefined
  let told: string | undefined
  let running: Promise<UpstreamFailure | undefined> | undefined
  let quietUntil = 0

  function take(session: Session, password: string): void {
    current = { session, password, proven: session.proven }
    if (session.proven) pause.end()
    told = undefined
    events.signedIn()
  }

  /** Once per distinct reason, not once per request. */
  function tell(reason: string): void {
    if (reason !== told) events.unusable(reason)
    told = reason
  }

  function refuse(password: string): void {
    current = undefined
    if (adopted === password) adopted = undefined
    quietUntil = 0
    events.refused(pause.begin(password))
    for (const listener of listeners) listener()
  }

  async function signIn(): Promise<UpstreamFailure | undefined> {
    const password = readPassword === undefined ? adopted : await readPassword().catch(unreadable)
    if (password === undefined || pause.holds(password)) return undefined
    let login: Login
    try {
      login = await scheme.login(password)
    } catch (error) {
      if (error instanceof DeviceFault) return error.failure
      throw error
    }
    // Another password was adopted meanwhile: this one no longer counts, whatever the device says of it.
    if (readPassword === undefined && adopted !== password) return undefined
    if (login.kind === 'right') take(login.session, password)
    else if (login.kind === 'wrong') refuse(password)
    else {
      pause.begin(password)
      tell(login.reason)
    }
    return undefined
  }

  function unreadable(error: Error): undefined {
    tell(error.message)
  }

  function signInOnce(): Promise<UpstreamFailure | undefined> {
    running ??= signIn().finally(() => {
      running = undefined
    })
    return running
  }

  return {
    async ready() {
      if (current?.session.over === true) current = undefined
      return current === undefined ? signInOnce() : undefined
    },
    credentialsFor(request, mark) {
      if (current === undefined) return undefined
      const { session } = current
      return { ...session.ticketFor(request, mark), session }
    },
    isChallenge: scheme.isChallenge,
    line: createBoundedQueue(LINE),
    async renew(answer, shown, mayLogin) {
      if (shown !== undefined && current?.session === shown.session) {
        const mark = current.session.renew(answer, shown.mark)
        if (mark !== undefined) return { kind: 'turn', mark }
        if (!current.proven) {
          refuse(current.password)
          return REFUSED
        }
        const now = clock.monotonic()
        if (!mayLogin || now < quietUntil) return REFUSED
        quietUntil = now + QUIET
        current = undefined
      }
      if (current === undefined) await signInOnce()
      return current !== undefined && mayLogin ? SIGNED_IN : REFUSED
    },
    helped() {
      quietUntil = 0
    },
    answered(request, answer, shown) {
      if (shown === undefined || current?.session !== shown.session) return
      if (!current.proven) pause.end()
      current.proven = true
      shown.session.answered(request, answer, shown.mark)
    },
    conceal: (fields, shown) => (shown ?? current)?.session.conceal(fields) ?? fields,
    async check(password) {
      try {
        const login = await scheme.login(password)
        if (login.kind === 'wrong') return login
        if (login.kind === 'right') {
          const adopt = (): void => {
            adopted = password
            quietUntil = 0
            take(login.session, password)
          }
          return { kind: 'right', adopt }
        }
        tell(login.reason)
        return { kind: 'failed', failure: 'destination_unavailable' }
      } catch (error) {
        if (error instanceof DeviceFault) return { kind: 'failed', failure: error.failure }
        throw error
      }
    },
    onRefused: (listener) => {
      listeners.push(listener)
    },
  }
}

interface Current {
  readonly session: Session
  readonly password: string
  /** The device took the session for a signed-in one: if it now refuses it, it is worn out, not wrong. */
  proven: boolean
}
