import type { IncomingMessage } from 'node:http'
import { type LoginMessage, type LoginPage, loginDocument } from '../browser/login-page.ts'
import { formCharset, parseForm, required } from '../http/form.ts'
import { prefix64 } from '../http/ip.ts'
import type { Passwords } from '../password/sources.ts'
import type { Logger } from '../record/log.ts'
import type { Clock } from '../system/clock.ts'
import {
  type AdminResponse,
  ClientGone,
  clientOf,
  errorResponse,
  readSmallBody,
  tooLarge,
} from './admin-response.ts'
import { createLoginAttempts, MOST_FAILURES } from './login-attempts.ts'
import { CHALLENGE } from './page-access.ts'
import type { PageSessions } from './page-sessions.ts'

export type PagePassword = Pick<Passwords, 'isSet' | 'verify' | 'generation'>

interface Dependencies {
  readonly clock: Clock
  readonly sessions: PageSessions
  readonly password: PagePassword
  readonly log: Logger
}

/** Answers `POST page/login`: a form with the field `password`. A new session replaces the browser's previous one. */
export function createLogin({
  clock,
  sessions,
  password,
  log,
}: Dependencies): (req: IncomingMessage) => Promise<AdminResponse> {
  const beginAttempt = createLoginAttempts(clock)

  return async (req) => {
    const charset = formCharset(req.rawHeaders)
    if (typeof charset !== 'string') {
      return errorResponse(
        415,
        'unsupported_media_type',
        'The login is a form: application/x-www-form-urlencoded.',
      )
    }
    const body = await readSmallBody(req)
    if (body === undefined) return tooLarge()
    const form = parseForm(body, charset)
    const candidate = 'kind' in form ? form : required(form, 'password')
    if (typeof candidate !== 'string')
      return errorResponse(400, 'invalid_request', 'The form has one field, password.')
    const client = clientOf(req)
    const attempt = beginAttempt(client)
    if ('retryAfter' in attempt)
      return loginPage(429, '', { 'Retry-After': String(attempt.retryAfter) }, 'wait', {
        wait: `Too many failed logins from your address. Try again in ${attempt.retryAfter} s.`,
      })
    let verified = await password.verify(candidate, prefix64(client))
    // Again if the password has changed meanwhile.
    while (verified.generation !== password.generation)
      verified = await password.verify(candidate, prefix64(client))
    const { result } = verified
    if (result === 'wrong' || result === 'other-name') {
      const failures = attempt.count
      if (failures === 1 || failures === MOST_FAILURES)
        log.warn({ client, failures }, 'live page: failed login')
      return loginPage(401, '', CHALLENGE, 'wrong')
    }
    attempt.forgive()
    if (result === 'overloaded') return loginPage(503, '', { 'Retry-After': '1' }, 'busy')
    // The client has left, or a reload has closed its connection (`admin.allow`): the session would be lost.
    if (req.socket.destroyed) throw new ClientGone()
    const earlier = sessions.carriedBy(req.rawHeaders)
    if (earlier !== undefined) sessions.end([earlier])
    // No await between the comparison above and `begin`: a change of the password ends the sessions that are open then.
    log.info({ client }, 'live page: signed in')
    return goToPage({ 'Set-Cookie': sessions.begin(undefined) })
  }
}

/** The words of the login that differ from those of the login at the device. */
const WORDS = {
  password: 'Password of this page',
  login: 'Sign in',
  busy: 'Too many logins at once. Try again.',
}

/**
 * The login page.
 *
 * @param base the relative reference to `/page/` from the path of the request. A proxy may serve the page below a prefix that Postern does
 * not know, so no reference is absolute
 * @param words replace the usual ones
 */
export function loginPage(
  status: number,
  base: '' | 'page/',
  fields: Readonly<Record<string, string>>,
  message?: LoginMessage,
  words: LoginPage['words'] = {},
): AdminResponse {
  const body = loginDocument({
    realm: 'Postern',
    title: 'Sign in to Postern',
    username: 'postern',
    words: { ...WORDS, ...words },
    message,
    action: { kind: 'form', to: `${base}login` },
    note: 'It is the one in the file of <code>admin.password_file</code>, not the device’s.',
    icon: `${base}icon.svg`,
  })
  return { status, type: 'text/html; charset=utf-8', body, fields }
}

/** Redirects from a path below `/page/` to the page. The reference is relative, so it works behind a proxy that adds a prefix. */
export function goToPage(fields: Readonly<Record<string, string>> = {}): AdminResponse {
  return { status: 303, fields: { Location: '../', ...fields } }
}
