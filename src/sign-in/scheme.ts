import type { OwnRequest, OwnResponse } from '../device/own-request.ts'
import { type Fields, fieldValues } from '../http/fields.ts'
import { parseChallenges } from './challenge.ts'

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
interface Credentials {
  readonly fields: Fields
  /** The Digest nonce that they use; empty in the other schemes. */
  readonly nonce: string
}

/** The session that a login opened. */
export interface Session {
  /** The device accepts this session: a request with it got a response that only a signed-in client gets. */
  readonly proven: boolean
  /**
   * The device has accepted the same credentials more than once. Until then they may be valid for one request only, so that
   * concurrent requests invalidate each other's.
   */
  readonly reusable: boolean
  /** The session knows that it has expired, though the device has refused nothing yet. */
  readonly expired: boolean
  /** @param nonce the one that `renew` returned; by default the one that all requests share */
  credentialsFor(request: RequestLine, nonce?: string): Credentials
  /**
   * Called when the device refused a request that used `nonce`. Returns the nonce to repeat the request with, if the response
   * holds one, and `undefined` if a new login is needed.
   */
  renew(response: OwnResponse, nonce: string): string | undefined
  /** Called when that request is not repeated: later requests share the nonce that `renew` returned. */
  adopt(nonce: string): void
  /** Called when the device accepted a request that used `nonce`. */
  accepted(request: RequestLine, response: OwnResponse, nonce: string): void
  /** Removes the session's secrets from the header of a response that goes to the client. */
  conceal(fields: Fields): Fields
  /** Ends the session at the device, if the scheme can. Bounded in time; never fails because of the device. */
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

/** The settings of the schemes that HTTP itself defines. */
export interface CheckedAccount {
  readonly user: string
  /** A path that responds 401 to a client that is not signed in. */
  readonly checkPath: string
}

/** Basic (RFC 7617), in UTF-8. The response of `checkPath` says whether a password is right. */
export function createBasicScheme({ user, checkPath }: CheckedAccount, ask: Ask): Scheme {
  const check = { method: 'GET', target: checkPath } as const
  return {
    async login(password) {
      const open = await ask({ ...check, fields: [] })
      if (!asksForBasic(open)) {
        return {
          kind: 'unusable',
          reason: `${checkPath} answered ${open.status} and did not ask for Basic credentials; set check_path to a path that does`,
        }
      }
      const session = basicSession(user, password)
      return loginResult(await ask({ ...check, fields: session.fields }), checkPath, session)
    },
    isChallenge: (_request, response) => asksForBasic(response),
  }
}

/** Some firmware sends 401 without `WWW-Authenticate`. */
function asksForBasic({ status, fields }: OwnResponse): boolean {
  const named = fieldValues(fields, 'www-authenticate')
  return (
    status === 401 && (named.length === 0 || parseChallenges(named).some(({ scheme }) => scheme === 'basic'))
  )
}

function basicSession(user: string, password: string): Session & { readonly fields: readonly string[] } {
  const pair = Buffer.from(`${user}:${password}`, 'utf8').toString('base64')
  const fields = ['Authorization', `Basic ${pair}`]
  return { ...fixedSession(fields), fields }
}

/** A session whose credentials are the same for all requests. */
export function fixedSession(fields: Fields): Session {
  const credentials = { fields, nonce: '' }
  return {
    proven: true,
    reusable: true,
    expired: false,
    credentialsFor: () => credentials,
    renew: () => undefined,
    adopt() {},
    accepted() {},
    conceal: (device) => device,
  }
}
