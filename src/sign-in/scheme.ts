import type { OwnRequest, OwnResponse } from '../device/own-request.ts'
import type { Fields } from '../http/fields.ts'

export interface RequestLine {
  readonly method: string
  /** In origin form, byte for byte as it is sent. */
  readonly target: string
}

/** Sends a request of the sidecar to the device. Fails with a `DeviceFault` if there is no response. */
export type Ask = (request: OwnRequest) => Promise<OwnResponse>

/** `unusable`: the response says neither that the password is right nor that it is wrong. The reason is safe to log. */
export type LoginResult =
  | { readonly kind: 'right'; readonly session: Session }
  | { readonly kind: 'wrong' }
  | { readonly kind: 'unusable'; readonly reason: string }

/** The credentials of one request. */
export interface Credentials {
  readonly fields: Fields
  /** The Digest nonce that they use; empty in the other schemes. */
  readonly nonce: string
}

/** The session that a login opened. What it lacks, its scheme does not have. */
export interface Session {
  /**
   * The device has accepted this session: a request with it got a response that only a signed-in client gets. If the device refuses it
   * now, it has expired, and the password is right.
   */
  proven: boolean
  /** @param nonce the one that `renew` returned; by default the one that all requests share */
  credentialsFor(request: RequestLine, nonce?: string): Credentials
  /** Removes the session's secrets from the header of a response that goes to the client. */
  conceal?(fields: Fields): Fields
  /** The session knows that it has expired, though the device has refused nothing yet. */
  readonly expired?: boolean
  /**
   * The device has accepted the same credentials more than once. Until then they may be valid for one request only, so that
   * concurrent requests invalidate each other's.
   */
  readonly reusable?: boolean
  /**
   * Called when the device refused a request that used `nonce`. Returns the nonce to repeat the request with, if the response
   * holds one, and `undefined` if a new login is needed.
   */
  renew?(response: OwnResponse, nonce: string): string | undefined
  /** Called when that request is not repeated: later requests share the nonce that `renew` returned. */
  adopt?(nonce: string): void
  /** Called when the device accepted a request that used `nonce`. */
  accepted?(request: RequestLine, response: OwnResponse, nonce: string): void
  /** Ends the session at the device. Bounded in time; never fails because of the device. */
  end?(): Promise<void>
}

/** One way to sign in: Basic, Digest, a form, or a session with a token. */
export interface Scheme {
  /** Fails with a `DeviceFault` if the device does not respond. */
  login(password: string): Promise<LoginResult>
  /** Whether the response asks the client to sign in first. */
  isChallenge(request: RequestLine, response: OwnResponse): boolean
}

/**
 * What the response to a request with credentials says about the password. Only 2xx and 3xx mean that it is right: a device
 * that is busy, locked or broken responds too.
 */
export function loginResult({ status }: OwnResponse, checkPath: string, session: Session): LoginResult {
  if (status === 401) return { kind: 'wrong' }
  if (status >= 200 && status < 400) return { kind: 'right', session }
  return { kind: 'unusable', reason: `${checkPath} answered ${status} to the credentials` }
}
