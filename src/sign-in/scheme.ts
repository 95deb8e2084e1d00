import type { Answer, OwnRequest } from '../device/own-request.ts'
import type { Fields } from '../http/fields.ts'

/** The request that is to carry credentials. */
export interface RequestLine {
  readonly method: string
  /** In origin form, byte for byte as it is sent. */
  readonly target: string
}

/** Sends it; fails with a `DeviceFault` where no answer comes. */
export type Ask = (request: OwnRequest) => Promise<Answer>

/** `unusable`: the device answered, and the answer says neither yes nor no; the reason is fit for a log. */
export type Login =
  | { readonly kind: 'right'; readonly session: Session }
  | { readonly kind: 'wrong' }
  | { readonly kind: 'unusable'; readonly reason: string }

/** Credentials for one request, and a mark by which the session knows which of its own they were. */
interface Ticket {
  readonly fields: Fields
  readonly mark: string
}

/** What a login gave. */
export interface Session {
  /** Whether the device itself has shown that it takes this session for a signed-in one. */
  readonly proven: boolean
  /**
   * What is shown has been taken more than once. Where it has not, it may be good for one request only, and requests that
   * are under way together take it from each other.
   */
  readonly reusable: boolean
  /** By its own account: nothing was refused yet, but there is nothing to show any more. */
  readonly over: boolean
  /** With `mark`, as `renew` gave it; else with what serves everything. */
  ticketFor(request: RequestLine, mark?: string): Ticket
  /**
   * The device refused a request with this mark. Where its answer is enough to go on, without a new login: the mark with
   * which to repeat the request.
   */
  renew(answer: Answer, mark: string): string | undefined
  /** That request is not repeated: what `renew` has found serves whatever comes next. */
  adopt(mark: string): void
  /** The device took a request with this mark. */
  answered(request: RequestLine, answer: Answer, mark: string): void
  /** The header of an answer for the client, less what the session alone may know. */
  conceal(fields: Fields): Fields
}

/** One way of signing in. */
export interface Scheme {
  /** Fails with a `DeviceFault` where the device gives no answer. */
  login(password: string): Promise<Login>
  /** Whether an answer means "sign in first". */
  isChallenge(request: RequestLine, answer: Answer): boolean
}

/**
 * What the answer to a request with credentials says of the password. Only a plain yes is a yes: a device that is
 * busy, locked or broken answers something, too.
 */
export function verdictOn({ status }: Answer, checkPath: string, session: Session): Login {
  if (status === 401) return { kind: 'wrong' }
  if (status >= 200 && status < 400) return { kind: 'right', session }
  return { kind: 'unusable', reason: `${checkPath} answered ${status} to the credentials` }
}
