import type { OwnRequest, OwnResponse } from '../device/own-request.ts'
import type { RequestLine } from '../device/request.ts'
import type { Fields } from '../http/fields.ts'
import type { SessionNames } from './session-cookies.ts'

/** Sends a request of the sidecar to the device. Rejects with a `DeviceFault` if there is no response. */
export type Ask = (request: OwnRequest) => Promise<OwnResponse>

/** `unusable`: the response does not say whether the password is right. The reason is safe to log. */
export type LoginResult =
  | { readonly kind: 'right'; readonly session: Session }
  | { readonly kind: 'wrong' }
  | { readonly kind: 'unusable'; readonly reason: string }

/** The credentials of one request. */
export interface Credentials {
  readonly fields: Fields
  /** The Digest nonce in the credentials; empty in the other schemes. */
  readonly nonce: string
}

/** The session that a login opened. A member is absent if the scheme has no use for it. */
export interface Session {
  /**
   * The device has accepted this session: a request with it got a response that only a signed-in client gets. If the device refuses the
   * session now, it has expired, and the password is right.
   */
  proven: boolean
  /** @param nonce the one that `renew` returned; by default the one that all requests share */
  credentialsFor(request: RequestLine, nonce?: string): Credentials
  /** The names under which the session travels; by default those of its scheme. */
  readonly names?: SessionNames
  /** The session is known to have expired, though the device has refused nothing yet. */
  readonly expired?: boolean
  /** A response to a client set another session. This one may be over, and the other one may belong to another account. */
  readonly changed?: boolean
  /**
   * The device has accepted the same credentials more than once. Until then they may be valid for one request only, and concurrent requests
   * invalidate each other's.
   */
  readonly reusable?: boolean
  /**
   * Called when the device refused a request that used `nonce`. Returns the nonce with which the request is repeated. Undefined if the
   * response holds none: a new login is needed.
   */
  renew?(response: OwnResponse, nonce: string): string | undefined
  /** Called when the request is not repeated. Later requests share the nonce that `renew` returned. */
  adopt?(nonce: string): void
  /**
   * Called when the device accepted a request that used `nonce`. `own`: a request of the sidecar itself. Only the response to such a
   * request may replace the session, because a client could sign in at the device as another user.
   */
  accepted?(request: RequestLine, response: OwnResponse, nonce: string, own: boolean): void
  /** Ends the session at the device. Bounded in time; never rejects because of the device. */
  end?: () => Promise<void>
}

/** One way to sign in: Basic, Digest, or a session of the device's own. */
export interface Scheme {
  /** Rejects with a `DeviceFault` if the device does not respond. */
  login(password: string): Promise<LoginResult>
  /** Whether the response asks the client to sign in first. */
  isChallenge(request: RequestLine, response: OwnResponse): boolean
  /** Whether only the body of this response shows if it is a challenge. Absent if heads always show it. */
  hidesChallenge?(response: Pick<OwnResponse, 'fields'>): boolean
  /** The names under which the sessions of this scheme travel, as far as the configuration has them. */
  readonly names: SessionNames
  /**
   * Asks the device whether it still takes the session; undefined if its response does not say. Present only if devices of this scheme may
   * act on a request and still challenge it. Rejects with a `DeviceFault` if the device does not respond.
   */
  probe?(session: Session): Promise<boolean | undefined>
}

/** How many nonces a login tries if each becomes stale before it is used. */
const MAX_TRIES = 4

/**
 * A login at a device with a path that needs one. That path asks for `credentials`, and afterwards shows whether the new session is one:
 * many devices give a cookie to every client. Only 2xx and 3xx mean that the password is right: a device that is busy, locked or broken
 * responds, too.
 *
 * @param begin answers the response to a request without credentials; returns undefined if that response does not ask for any
 */
export async function checkedLogin(
  checkPath: string,
  ask: Ask,
  isChallenge: Scheme['isChallenge'],
  credentials: string,
  begin: (open: OwnResponse) => Promise<LoginResult | undefined>,
): Promise<LoginResult> {
  const check = { method: 'GET', target: checkPath } as const
  const unusable = (problem: string) => ({ kind: 'unusable', reason: `${checkPath} ${problem}` }) as const
  const open = await ask({ ...check, fields: [] })
  const login = isChallenge(check, open) ? await begin(open) : undefined
  if (login === undefined)
    return unusable(
      `answered ${open.status} and did not ask for ${credentials}; set check_path to a path that does`,
    )
  if (login.kind !== 'right') return login
  const { session } = login
  let result: LoginResult | undefined
  try {
    result = await proven(session)
  } finally {
    if (result?.kind !== 'right') await session.end?.()
  }
  return result

  async function proven(session: Session): Promise<LoginResult> {
    let nonce: string | undefined
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const sent = session.credentialsFor(check, nonce)
      const response = await ask({ ...check, fields: sent.fields })
      const { status } = response
      // A device sends `stale` only if the password is right (RFC 7616 §3.3).
      nonce = status === 401 ? session.renew?.(response, sent.nonce) : undefined
      if (nonce !== undefined) continue
      if (status === 401 || isChallenge(check, response)) return { kind: 'wrong' }
      session.accepted?.(check, response, sent.nonce, true)
      return status >= 200 && status < 400
        ? { kind: 'right', session }
        : unusable(`answered ${status} to the credentials`)
    }
    return unusable('calls every nonce stale')
  }
}
