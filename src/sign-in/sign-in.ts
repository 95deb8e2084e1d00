import type { OwnResponse } from '../device/own-request.ts'
import type { RequestLine } from '../device/request.ts'
import type { Fields } from '../http/fields.ts'
import type { UpstreamFailure } from '../http/refusal.ts'
import { createBoundedQueue } from '../system/bounded-queue.ts'
import type { Clock } from '../system/clock.ts'
import { LoginBudget } from './login-budget.ts'
import { createLogins, type LoginEvents } from './logins.ts'
import { PasswordRecord } from './password-record.ts'
import { PresentSession } from './present-session.ts'
import type { Credentials, Scheme, Session } from './scheme.ts'
import { type SessionNames, withoutSession } from './session-cookies.ts'
import { SessionLife } from './session-life.ts'
import { createSessionProbe } from './session-probe.ts'

/** The credentials that were sent with one request. They tell `renew` and `accepted` which session the response is about. */
export interface SentCredentials extends Credentials {
  readonly session: Session
}

/** Whether a repetition of the request makes sense: after a login, or with the nonce of the challenge. */
type Renewal =
  | { readonly kind: 'signed-in' }
  | { readonly kind: 'new-nonce'; readonly nonce: string }
  | { readonly kind: 'refused' }

export interface SignInEvents extends LoginEvents {
  /** Responses to clients change the session so often that some of them no longer cause a login. Reported once. */
  readonly changing: () => void
  /** A session could not be ended at the device, once for each reason. The reason holds no secret. */
  readonly notSignedOut: (reason: string) => void
}

/** One request at a time is repeated. A request that has waited for `maxWait` (ms) is sent anyway. */
const REPEAT_QUEUE = { inside: 1, waiting: Number.POSITIVE_INFINITY, maxWait: 2_000 }

const REFUSED = { kind: 'refused' } as const
const SIGNED_IN = { kind: 'signed-in' } as const

export type SignIn = ReturnType<typeof createSignIn>

/**
 * The sidecar's own account at the device.
 *
 * @param readPassword reads the password for every login, so that a changed one takes effect when the device refuses the old one. The
 *   message of its rejection is safe to log. Undefined: the password is the one that was adopted last
 * @param adopted the one before a reload
 */
export function createSignIn(
  scheme: Scheme,
  readPassword: (() => Promise<string>) | undefined,
  clock: Clock,
  events: SignInEvents,
  adopted?: string,
) {
  const present = new PresentSession(scheme)
  const life = new SessionLife(clock)
  const budget = new LoginBudget(clock, events.changing)
  const record = new PasswordRecord(clock)
  const logins = createLogins({ scheme, readPassword, adopted, clock, present, life, budget, record, events })
  const sessionProbe = createSessionProbe({ scheme, present, life, logins })

  function retireIfOver(): void {
    const session = present.inUse?.session
    if (session?.expired === true || (session?.changed === true && budget.takeChange())) present.retire()
  }

  return {
    /** A login or a probe is at the device. The request that began it has a place there; those that wait with it need none. */
    isAsking: (): boolean => logins.isRunning() || sessionProbe.isRunning(),
    /**
     * Signs in if there is no session. Concurrent callers share one login. Returns the failure if the device did not respond.
     *
     * @param changes the request may change something, so it could not be repeated. If the session was not seen alive for longer than
     *   sessions of this device are known to live, the device is asked first
     */
    async ready(changes = false): Promise<UpstreamFailure | undefined> {
      retireIfOver()
      if (present.inUse === undefined || present.inUse.doubted) return logins.signIn()
      if (!changes || !sessionProbe.isDue()) return undefined
      const failure = await sessionProbe.probe()
      retireIfOver()
      return failure ?? (present.inUse === undefined ? logins.signIn() : undefined)
    },
    /**
     * The credentials for this request. Undefined while not signed in: the request is then sent without, and the device decides. `nonce`:
     * from the renewal, for a repeated request.
     */
    credentialsFor(request: RequestLine, nonce?: string): SentCredentials | undefined {
      const session = present.inUse?.session
      return session && { ...session.credentialsFor(request, nonce), session }
    },
    isChallenge: scheme.isChallenge,
    hidesChallenge: (head: Pick<OwnResponse, 'fields'>): boolean => scheme.hidesChallenge?.(head) === true,
    /** Requests that are repeated with a new nonce wait here if the device accepts each nonce only once. */
    repeatQueue: createBoundedQueue(clock, REPEAT_QUEUE),
    /**
     * Called when the device responded with a challenge.
     *
     * @param mayLogin this request has not caused a login yet
     * @param mayHaveActed the device may have acted on the request, so it is not repeated, and the next request signs in
     */
    async renew(
      response: OwnResponse,
      sent: SentCredentials | undefined,
      mayLogin: boolean,
      mayHaveActed = false,
    ): Promise<Renewal> {
      const { inUse } = present
      if (sent !== undefined && inUse?.session === sent.session) {
        // No cookie of the session is for this path, so the response says nothing about the session.
        if (sent.fields.length === 0) return REFUSED
        const { session } = inUse
        const nonce = session.renew?.(response, sent.nonce)
        if (nonce !== undefined) return { kind: 'new-nonce', nonce }
        life.seenOver()
        if (!session.proven && !inUse.doubted) logins.doubt(inUse)
        if (!session.proven || !mayLogin) return REFUSED
        if (!budget.takeRefusal(session.changed === true)) return REFUSED
        present.retireChallenged()
      }
      if (mayHaveActed) return REFUSED
      if (present.inUse === undefined) await logins.signIn()
      const isNew = present.inUse !== undefined && present.inUse.session !== sent?.session
      return isNew && mayLogin ? SIGNED_IN : REFUSED
    },
    /** Called when the device accepted a request that it had refused before the login. */
    loginHelped: (): void => budget.allowNext(),
    /** Called when the device's response is no challenge. */
    accepted(request: RequestLine, response: OwnResponse, sent: SentCredentials | undefined): void {
      const { inUse } = present
      if (sent === undefined || inUse?.session !== sent.session) return
      const { session, nonce } = sent
      if (sent.fields.length > 0) {
        life.seenAlive()
        if (!session.proven) {
          record.worked(inUse.password)
          inUse.doubted = false
          session.proven = true
        }
      }
      session.accepted?.(request, response, nonce, false)
    },
    /** The names under which the session travels, to remove what a client sends in its place. */
    names: (sent: SentCredentials | undefined): SessionNames => sent?.session.names ?? present.names,
    /** Removes the secrets of the sidecar's session from the header of a response that goes to the client. */
    conceal: (fields: Fields, sent: SentCredentials | undefined): Fields => {
      const own = sent?.session.names ?? present.names
      return own.cookies.size === 0 && own.headers.size === 0 ? fields : withoutSession(fields, own)
    },
    check: logins.check,
    adopted: (): string | undefined => logins.adopted,
    onRefused: logins.onRefused,
    signOut: logins.signOut,
  }
}
