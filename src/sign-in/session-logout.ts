import type { SessionSettings } from '../config/auth-fields.ts'
import { DeviceFault } from '../device/failure.ts'
import type { OwnResponse } from '../device/own-request.ts'
import { type DeviceNames, isDeviceOrigin } from '../http/device-names.ts'
import { fieldValues } from '../http/fields.ts'
import { type Clock, waitAtMost } from '../system/clock.ts'
import type { Ask, Session } from './scheme.ts'

export interface SessionDevice {
  readonly ask: Ask
  readonly clock: Clock
  /** The names of the device. */
  readonly known: () => DeviceNames
  /** Called when a session could not be ended at the device, once for each reason. The reason holds no secret. */
  readonly onLogoutFailed: (reason: string) => void
}

/** How long a logout may take (ms): the next login waits for it. */
const LONGEST_LOGOUT = 5_000

/** A DNS name has 253 characters at most (RFC 1035 §2.3.4). */
const LONGEST_ORIGIN = 253

/**
 * Makes the function that ends a session as the configuration says, given the response that opened it. Undefined without a configured
 * logout.
 */
export function createLogout(
  { login, logout, expired }: SessionSettings,
  { ask, clock, known, onLogoutFailed }: SessionDevice,
): ((session: Session, opened: OwnResponse) => Promise<void>) | undefined {
  if (logout === undefined) return undefined
  const { method, path } = logout
  const reported = new Set<string>()
  const report = (reason: string, kind = reason): void => {
    if (!reported.has(kind)) onLogoutFailed(reason)
    reported.add(kind)
  }

  function targetOf({ fields }: OwnResponse): string | undefined {
    if (path !== undefined) return path
    const [location] = fieldValues(fields, 'location')
    const names = known()
    const url = location === undefined ? null : URL.parse(location, names.origin + login.path)
    if (url !== null && isDeviceOrigin(url.origin, names)) return url.pathname + url.search
    // Another server must not get the token. Only the origin is reported, once and cut to a length: the path may be a secret.
    const named = url === null ? 'no address' : `${url.origin.slice(0, LONGEST_ORIGIN)}, not the device`
    report(`Location of the login names ${named}`, 'foreign')
    return undefined
  }

  async function send(target: string, session: Session): Promise<void> {
    try {
      const { fields } = session.credentialsFor({ method, target })
      const { status } = await ask({ method, target, fields })
      if (status >= 400 && !expired.includes(status)) report(`the logout answered ${status}`)
    } catch (error) {
      if (!(error instanceof DeviceFault)) throw error
      report(`the logout failed (${error.failure})`)
    }
  }

  return async (session, opened) => {
    const target = targetOf(opened)
    if (target !== undefined) await waitAtMost(clock, LONGEST_LOGOUT, send(target, session))
  }
}
