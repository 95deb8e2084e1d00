import { type DeviceAccount, loginHas, type UpstreamAuthConfig } from '../config/auth-fields.ts'
import type { Connections } from '../device/connections.ts'
import { DeviceFault, failureOf } from '../device/failure.ts'
import { sendOwnRequest } from '../device/own-request.ts'
import type { DeviceNames } from '../http/device-names.ts'
import { asCgi, type Fields, fieldNamesIn, keepFields } from '../http/fields.ts'
import type { Logger } from '../record/log.ts'
import type { Clock } from '../system/clock.ts'
import { readSecretLine } from '../system/named-file.ts'
import { isBug } from '../system/setup-error.ts'
import { createBasicScheme, createDigestScheme } from './http-schemes.ts'
import type { Ask, Scheme } from './scheme.ts'
import type { SessionDevice } from './session-logout.ts'
import { createSessionScheme } from './session-scheme.ts'
import { createSignIn, type SignIn, type SignInEvents } from './sign-in.ts'

/** The `Host` and the fields of every request to the device, and its further names. */
interface CommonFields extends Pick<DeviceNames, 'host' | 'names'> {
  readonly added: Fields
}

interface SignInSetup {
  /** The configuration key of `auth`, for messages. */
  readonly key: string
  readonly connections: Connections
  /** Scheme, host and port of the device. */
  readonly origin: string
  readonly request: () => CommonFields
  readonly clock: Clock
  readonly events: SignInReports
  /** Whose place it takes. It signs in by the same password, unless a file has it. */
  readonly before?: Pick<SignIn, 'adopted'> | undefined
}

/** The events of a sign-in, for a log that names configuration keys. */
interface SignInReports extends Omit<SignInEvents, 'changing'> {
  /** `key`: where the operator can name the one cookie that is the session; undefined if the configuration names it. */
  readonly changing: (key: string | undefined) => void
}

/** The sign-in of a configuration. */
export interface OpenedSignIn extends SignIn {
  /** From now on, its own requests have these fields. The session goes on. */
  sendWith(fields: CommonFields): void
}

/** Sets up the sign-in of the configuration; `undefined` for `off`. Fails with `SetupError` if the password file is unusable. */
export async function openSignIn(
  auth: UpstreamAuthConfig,
  { key, connections, origin, request, clock, events, before }: SignInSetup,
): Promise<OpenedSignIn | undefined> {
  if (auth === 'off') return undefined
  const { password } = auth
  const readPassword =
    password !== undefined
      ? () => readSecretLine(`${key}.password.file`, password.file)
      : // Some devices have tokens but no accounts.
        loginHas('$password', auth)
        ? undefined
        : async () => ''
  await readPassword?.()
  let common = request
  const ask = createAsk(connections, () => {
    const { host, added } = common()
    return host === undefined ? added : ['Host', host, ...added]
  })
  const known = (): DeviceNames => ({ ...common(), origin })
  const scheme = schemeFor(auth, { ask, clock, known, onLogoutFailed: events.notSignedOut })
  const reports: SignInEvents = {
    ...events,
    changing: () => {
      const isNamed = auth.kind !== 'session' || auth.session.token !== undefined
      events.changing(isNamed ? undefined : `${key}.session.token.cookie`)
    },
  }
  const adopted = readPassword === undefined ? before?.adopted() : undefined
  return {
    ...createSignIn(scheme, readPassword, clock, reports, adopted),
    sendWith(fields) {
      common = () => fields
    },
  }
}

function schemeFor(account: DeviceAccount, device: SessionDevice): Scheme {
  switch (account.kind) {
    case 'basic':
      return createBasicScheme(account, device.ask)
    case 'digest':
      return createDigestScheme(account, device.ask)
    case 'session':
      return createSessionScheme(account, device)
  }
}

/**
 * Sends the sidecar's own requests to the device, with the `common` fields that a request does not set itself. A request that meets a
 * closed idle connection is sent once more. Rejects with a `DeviceFault`, whose message holds nothing that was sent.
 */
function createAsk(connections: Connections, common: () => Fields): Ask {
  return async (request) => {
    const own = new Set(fieldNamesIn(request.fields).values().map(asCgi))
    const fields = [...keepFields(common(), (name) => !own.has(asCgi(name))), ...request.fields]
    try {
      return await sendOwnRequest(connections, { ...request, fields }, true)
    } catch (error) {
      throw isBug(error) ? error : new DeviceFault(failureOf(error))
    }
  }
}

/** Logs the sign-in events. No line holds a password, cookie, token or nonce. */
export function signInLog(log: Logger): SignInReports {
  return {
    signedIn: () => log.info('signed in to the device'),
    refused: (pause) =>
      log.error(
        { pauseMs: pause },
        'sign-in failed: the device refuses the password; no new attempt for pauseMs',
      ),
    unusable: (reason) => log.error({ reason }, 'upstream.auth: cannot sign in to the device'),
    changing: (key) =>
      log.warn(
        `the device changes Postern's session in its responses to clients, which causes one login after the other; ${key === undefined ? 'let the device keep its session' : `if only another cookie of its login changes, write the name of the session's cookie in ${key}`}`,
      ),
    notSignedOut: (reason) =>
      log.warn(
        { reason },
        'upstream.auth: cannot sign out of the device, which keeps the session until it expires',
      ),
  }
}
