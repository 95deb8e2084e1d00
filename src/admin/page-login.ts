import type { IncomingMessage } from 'node:http'
import { loginDocument, type Message } from '../browser/login-page.ts'
import { formCharset, parseForm, required } from '../http/form.ts'
import { prefix64 } from '../http/ip.ts'
import type { Passwords } from '../password/sources.ts'
import type { Logger } from '../record/log.ts'
import type { Clock } from '../system/clock.ts'
import { type Answer, clientOf, errorAnswer, readSmallBody, tooLarge } from './answer.ts'
import { createLoginAttempts, MOST_FAILURES } from './login-attempts.ts'
import { CHALLENGE } from './page-access.ts'
import type { PageSessions } from './page-sessions.ts'

export type PagePassword = Pick<Passwords, 'verify' | 'generation'>

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
}: Dependencies): (req: IncomingMessage) => Promise<Answer> {
  const beginAttempt = createLoginAttempts(clock)

  return async (req) => {
    const charset = formCharset(req.rawHeaders)
    if (typeof charset !== 'string') {
      return errorAnswer(
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
      return errorAnswer(400, 'invalid_request', 'The form has one field, password.')
    const client = clientOf(req)
    const attempt = beginAttempt(client)
    if ('retryAfter' in attempt)
      return loginPage(429, '', { 'Retry-After': String(attempt.retryAfter) }, 'wait')
    let verified: Awaited<ReturnType<PagePassword['verify']>>
    // Again if the password has changed meanwhile: the change ends all sessions, but would miss one that begins after it.
    do verified = await password.verify(candidate, prefix64(client))
    while (verified.generation !== password.generation)
    const { result } = verified
    if (result === 'wrong' || result === 'other-name') {
      const failures = attempt.count
      if (failures === 1 || failures === MOST_FAILURES)
        log.warn({ client, failures }, 'live page: failed login')
      return loginPage(401, '', CHALLENGE, 'wrong')
    }
    attempt.forgive()
    if (result === 'overloaded') return loginPage(503, '', { 'Retry-After': '1' }, 'busy')
    const earlier = sessions.carriedBy(req.rawHeaders)
    if (earlier !== undefined) sessions.end([earlier])
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
 * @param base what leads from the path of the request to `/page/`. References are relative, because a proxy may serve the page below a
 * prefix that Postern does not know.
 */
export function loginPage(
  status: number,
  base: '' | 'page/',
  fields: Readonly<Record<string, string>>,
  message?: Message,
): Answer {
  const wait = `Too many failed logins from your address. Try again in ${fields['Retry-After']} s.`
  const body = loginDocument({
    realm: 'Postern',
    words: { ...WORDS, wait },
    message,
    action: { kind: 'password', to: `${base}login` },
    note: 'It is the one in the file of <code>admin.password_file</code>, not the device’s.',
    icon: `${base}icon.svg`,
  })
  return { status, type: 'text/html; charset=utf-8', body, fields }
}

/** Redirects from a path below `/page/` to the page. The reference is relative, so it works behind a proxy that adds a prefix. */
export function goToPage(fields: Readonly<Record<string, string>> = {}): Answer {
  return { status: 303, fields: { Location: '../', ...fields } }
}
