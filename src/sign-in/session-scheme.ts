import type { SessionAccount } from '../config/auth-fields.ts'
import { DeviceFault } from '../device/failure.ts'
import type { OwnResponse } from '../device/own-request.ts'
import type { RequestLine } from '../device/request.ts'
import { fieldValues } from '../http/fields.ts'
import { loosePathOf } from '../http/request-path.ts'
import { type Clock, waitAtMost } from '../system/clock.ts'
import type { Ask, Scheme, Session } from './scheme.ts'
import { cookiesSetBy, isExpired, type SessionCookie, sessionNames } from './session-cookies.ts'

export interface SessionDevice {
  readonly ask: Ask
  readonly clock: Clock
  /** The origin of the device, and the one that it knows from `Host` if that is another. */
  readonly origins: () => readonly string[]
  /** Called when a session could not be ended at the device, once for each reason. The reason holds no secret. */
  readonly onLogoutFailed: (reason: string) => void
}

/** With these the device refuses the account. Any other response without a token says nothing about the password. */
const WRONG: readonly number[] = [400, 401, 403]

/** How long a logout may take (ms): the next login waits for it. */
const LONGEST_LOGOUT = 5_000

/** A DNS name has 253 characters at most (RFC 1035 §2.3.4). */
const LONGEST_ORIGIN = 253

/** Text that can be a field value: visible ASCII, with spaces inside only. */
const SENDABLE = /^[!-~](?:[ -~]*[!-~])?$/

/**
 * A session of the device's own: the response to a login holds a token, which later requests carry. Examples are Redfish
 * (DSP0266 §13.3.4), the `X-Transmission-Session-Id` of transmission, and APIs with a session id in JSON.
 */
export function createSessionScheme(account: SessionAccount, device: SessionDevice): Scheme {
  const { session: settings } = account
  const { login, token, expired } = settings
  const endSession = createLogout(settings, device)
  const carriers = carriersOf(settings)

  return {
    isChallenge: (_request, { status }) => expired.includes(status),
    names: sessionNames(carriers.cookies, carriers.headers),
    async login(password) {
      const response = await device.ask({
        method: login.method,
        target: login.path,
        keepsBody: 'json' in token,
        ...loginBody(account, password),
      })
      const { status } = response
      const opened = tokenIn(response, settings, device.clock)
      // transmission hands out its token with the very status that asks for it.
      const accepted = status < 400 || expired.includes(status)
      if (accepted && opened !== undefined) {
        const session = createSession(account, opened, device.clock)
        if (endSession !== undefined) session.end = () => endSession(session, response)
        return { kind: 'right', session }
      }
      if (WRONG.includes(status)) return { kind: 'wrong' }
      const missing =
        status < 400 ? ` without a token (${tokenPlace(settings)}): a wrong password, or key` : ''
      return { kind: 'unusable', reason: `the login at ${login.path} answered ${status}${missing}` }
    },
  }
}

type SessionSettings = SessionAccount['session']

/** Where the configuration expects the token: `header X-Auth-Token`. */
export function tokenPlace({ token }: SessionSettings): string {
  const [[kind = '', name = ''] = []] = Object.entries<string>(token)
  return `${kind} ${name}`
}

/** A token. `path` and `until` are those of a cookie. */
interface Token extends Pick<SessionCookie, 'value' | 'until'> {
  readonly path?: string
}

function tokenIn(response: OwnResponse, settings: SessionSettings, clock: Clock): Token | undefined {
  const { token, send, login } = settings
  const found =
    'cookie' in token
      ? cookiesSetBy(response.fields, login.path, clock).findLast(
          (cookie) => cookie.name === token.cookie && !isExpired(cookie, clock.monotonic()),
        )
      : tokenWithoutExpiry(
          'header' in token
            ? fieldValues(response.fields, token.header.toLowerCase())[0]
            : jsonValueAt(response.body, token.json),
        )
  return found !== undefined && isSendable(found.value, send) ? found : undefined
}

function tokenWithoutExpiry(value: string | undefined): Token | undefined {
  return value === undefined ? undefined : { value, until: undefined }
}

function isSendable(value: string, send: SessionSettings['send']): boolean {
  return SENDABLE.test(value) && !(send.cookie !== undefined && value.includes(';'))
}

/** The cookies and header fields in which the token comes and goes. */
function carriersOf({ token, send }: SessionSettings) {
  const carriers = [...Object.entries<string>(token), ...Object.entries(send)]
  const names = (wanted: 'header' | 'cookie'): readonly string[] =>
    carriers.flatMap(([kind, name]) => (kind === wanted ? name : []))
  return { headers: names('header'), cookies: names('cookie') }
}

function createSession({ session, onChange }: SessionAccount, opened: Token, clock: Clock): Session {
  const { token, send, login } = session
  const { header = 'Cookie', prefix = '', cookie } = send
  const { headers, cookies } = carriersOf(session)
  let kept = opened
  let changed = false
  let isOver = false

  const follows = ({ method, target }: RequestLine): boolean =>
    onChange === 'follow' && (method !== login.method || loosePathOf(target) !== loosePathOf(login.path))

  function take(next: Token, mayChange: boolean): void {
    if (next.value === kept.value) kept = { ...kept, until: next.until }
    else if (mayChange && isSendable(next.value, send)) kept = next
    else changed = true
  }

  return {
    // Many devices set a cookie for every client. Only a request shows whether it is a session.
    proven: !('cookie' in token),
    get expired() {
      return isOver || isExpired(kept, clock.monotonic())
    },
    get changed() {
      return changed
    },
    credentialsFor() {
      const { value } = kept
      return { fields: [header, cookie === undefined ? prefix + value : `${cookie}=${value}`], nonce: '' }
    },
    accepted(request, { fields }, _nonce, own) {
      const mayChange = own || follows(request)
      for (const name of headers) {
        const [value] = fieldValues(fields, name.toLowerCase())
        if (value === undefined || value === '') continue
        const isPrefixed = prefix !== '' && value.startsWith(prefix)
        take({ ...kept, value: isPrefixed ? value.slice(prefix.length) : value }, mayChange)
      }
      for (const set of cookiesSetBy(fields, request.target, clock)) {
        if (!cookies.includes(set.name)) continue
        if (set.value === '' || isExpired(set, clock.monotonic())) {
          isOver ||= kept.path === undefined || kept.path === set.path
        } else take(set, mayChange)
      }
    },
  }
}

/** The content type and the body of a login. `$user` and `$password` stand for the account, in values only. */
function loginBody({ user = '', session: { login } }: SessionAccount, password: string) {
  const { json, form } = login
  // One pass: a password that contains `$user` stays as it is.
  const filled = (text: string): string =>
    text.replace(PLACEHOLDER, (_, name: string) => (name === 'user' ? user : password))
  if (json !== undefined) {
    const body = JSON.stringify(json, (_, value: unknown) =>
      typeof value === 'string' ? filled(value) : value,
    )
    return { fields: ['Content-Type', 'application/json'], body }
  }
  if (form === undefined) return { fields: [] }
  const pairs = Object.entries(form).map(([name, value]) => [name, filled(value)])
  return {
    fields: ['Content-Type', 'application/x-www-form-urlencoded'],
    body: new URLSearchParams(pairs).toString(),
  }
}

/** The text or number, as written, at a JSON Pointer (RFC 6901); undefined if there is none, or if the body is not JSON. */
function jsonValueAt(body: Buffer | undefined, pointer: string): string | undefined {
  let value: unknown
  try {
    // A session id may have more digits than a number of JavaScript.
    const asWritten = (_name: string, each: unknown, written?: { readonly source?: string }): unknown =>
      typeof each === 'number' ? written?.source : each
    value = JSON.parse(body?.toString() ?? '', asWritten)
  } catch {
    return undefined
  }
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    // Proof of the cast: the line above.
    value = (value as Readonly<Record<string, unknown>>)[name]
  }
  return typeof value === 'string' ? value : undefined
}

const PLACEHOLDER = /\$(user|password)\b/g

/** Ends a session as the configuration says; undefined if it names no logout. `opened` is the response that opened it. */
function createLogout(
  { login, logout, expired }: SessionSettings,
  { ask, clock, origins, onLogoutFailed }: SessionDevice,
): ((session: Session, opened: OwnResponse) => Promise<void>) | undefined {
  const reported = new Set<string>()
  const report = (reason: string, kind = reason): void => {
    if (!reported.has(kind)) onLogoutFailed(reason)
    reported.add(kind)
  }
  if (logout === undefined) return undefined
  const { method, path } = logout

  function targetOf({ fields }: OwnResponse): string | undefined {
    if (typeof path === 'string') return path
    const [location] = fieldValues(fields, path.header.toLowerCase())
    const own = origins()
    const url = location === undefined ? null : URL.parse(location, own[0] + login.path)
    if (url !== null && own.some((origin) => new URL(origin).origin === url.origin))
      return url.pathname + url.search
    // Another server must not get the token. The path may be a secret, so only the origin is reported, of one login, and cut.
    const named = url === null ? 'no address' : `${url.origin.slice(0, LONGEST_ORIGIN)}, not the device`
    report(`${path.header} of the login names ${named}`, 'foreign')
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
