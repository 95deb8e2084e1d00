import type { IncomingMessage } from 'node:http'
import { prefix64 } from '../http/ip.ts'
import type { Passwords } from '../password/sources.ts'
import type { Logger } from '../record/log.ts'
import type { Clock } from '../system/clock.ts'
import { type Answer, clientOf, errorAnswer, readSmallBody, tooLarge } from './answer.ts'
import { createLoginAttempts, MOST_FAILURES } from './login-attempts.ts'
import { CHALLENGE } from './page-access.ts'
import type { PageFile, PageFiles } from './page-files.ts'
import type { PageSessions } from './page-sessions.ts'

export type PagePassword = Pick<Passwords, 'verify' | 'generation'>

interface Dependencies {
  readonly clock: Clock
  readonly sessions: PageSessions
  readonly password: PagePassword
  readonly log: Logger
  readonly files: PageFiles
}

/** Answers `POST page/login`: a form with the field `password`. A new session replaces the browser's previous one. */
export function createLogin(deps: Dependencies): (req: IncomingMessage) => Promise<Answer> {
  const { clock, sessions, password, log, files } = deps
  const beginAttempt = createLoginAttempts(clock)

  return async (req) => {
    if (!/^application\/x-www-form-urlencoded *(?:;|$)/i.test(req.headers['content-type'] ?? '')) {
      return errorAnswer(
        415,
        'unsupported_media_type',
        'The login is a form: application/x-www-form-urlencoded.',
      )
    }
    const body = await readSmallBody(req)
    if (body === undefined) return tooLarge()
    const [candidate, ...others] = new URLSearchParams(body).getAll('password')
    if (candidate === undefined || others.length > 0) {
      return errorAnswer(400, 'invalid_request', 'The form has one field, password.')
    }
    const client = clientOf(req)
    const attempt = beginAttempt(client)
    if ('retryAfter' in attempt) {
      const seconds = String(attempt.retryAfter)
      const sentence = `Too many failed logins from your address. Try again in ${seconds} s.`
      return failedLogin(files, 429, sentence, { 'Retry-After': seconds })
    }
    let verified: Awaited<ReturnType<PagePassword['verify']>>
    // Again if the password has changed meanwhile: the change ends all sessions, but would miss one that begins after it.
    do verified = await password.verify(candidate, prefix64(client))
    while (verified.generation !== password.generation)
    const { result } = verified
    if (result === 'wrong' || result === 'other-name') {
      const failures = attempt.count
      if (failures === 1 || failures === MOST_FAILURES)
        log.warn({ client, failures }, 'live page: failed login')
      return failedLogin(files, 401, 'Wrong password.', CHALLENGE)
    }
    attempt.forgive()
    if (result === 'overloaded') {
      return failedLogin(files, 503, 'Too many logins at once. Try again.', { 'Retry-After': '1' })
    }
    const earlier = sessions.carriedBy(req.rawHeaders)
    if (earlier !== undefined) sessions.end([earlier])
    log.info({ client }, 'live page: signed in')
    return goToPage({ 'Set-Cookie': sessions.begin(undefined) })
  }
}

/**
 * The login page with a sentence, as the response of `/page/login`. The references in the file are relative to `/`, so they are made
 * relative to `/page/`. They stay relative, because a proxy may serve the page below a prefix that Postern does not know.
 */
async function failedLogin(
  files: PageFiles,
  status: number,
  sentence: string,
  fields: Readonly<Record<string, string>>,
): Promise<Answer> {
  const { type, body } = await documentOf(files, 'login.html')
  const text = String(body)
    .replaceAll('="page/', '="')
    .replace('<form', `<p id="message" class="message" role="alert">${sentence}</p>\n<form`)
    // A screen reader reads the field, which has the focus when the page opens, but no alert that is there from the beginning.
    .replace(
      '<input id="password"',
      `$& aria-describedby="message"${status === 401 ? ' aria-invalid="true"' : ''}`,
    )
  return { status, type, body: text, fields }
}

/** An HTML document of the page. Rejects with `TypeError` if the page has no such file. */
export async function documentOf(files: PageFiles, name: string): Promise<PageFile> {
  const file = (await files()).get(name)
  if (file === undefined) throw new TypeError(`the page has no ${name}`)
  return file
}

/** Redirects from a path below `/page/` to the page. The reference is relative, so it works behind a proxy that adds a prefix. */
export function goToPage(fields: Readonly<Record<string, string>> = {}): Answer {
  return { status: 303, fields: { Location: '../', ...fields } }
}
