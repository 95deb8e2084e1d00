import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Explanation, RequestRow } from '../overview/model.ts'
import type { Overview } from '../overview/overview.ts'
import type { Logger } from '../record/log.ts'
import type { Clock } from '../system/clock.ts'
import type { Tokens } from '../tokens/token-contract.ts'
import { type Answer, errorAnswer, isRead, json, methodNotAllowed } from './answer.ts'
import { createEventStreams } from './event-streams.ts'
import { createPageRevocation } from './operator-revocation.ts'
import { type Access, accessOf, type Reach, refuseAccess, type Viewer } from './page-access.ts'
import {
  failedLoginPage,
  fileAnswer,
  indexPage,
  loginPage,
  PAGE_FIELDS,
  type PageFiles,
} from './page-documents.ts'
import { createLogin, type PagePassword, viewerLog } from './page-login.ts'
import { refuseCrossOrigin } from './same-origin.ts'
import { createSessions } from './sessions.ts'

export interface PageDependencies {
  readonly clock: Clock
  readonly overview: Overview
  /** Called when the first viewer comes. */
  readonly files: PageFiles
  /** The last requests, latest first. */
  readonly recent: () => readonly RequestRow[]
  readonly explain: (id: string) => Explanation | undefined
  readonly revoke: Tokens['revoke']
  /** Undefined without `admin.password_file`. */
  readonly password: PagePassword | undefined
  readonly log: Logger
  readonly onBug: (error: unknown) => void
}

/** The live page: `/` and everything below `/page/`. */
export interface PageRoutes {
  /**
   * Resolves with the response, or with undefined if a stream of events is the response. Rejects with `ClientGone` if the client left,
   * and for a bug.
   */
  answer(req: IncomingMessage, res: ServerResponse, path: string): Promise<Answer | undefined>
  /** Ends all sessions with their streams, because the password has changed. */
  endSessions(): void
  /** Ends all streams. No new one begins. */
  stop(): void
}

/** Of an id of a view, so many characters are compared. */
const LONGEST_VIEW = 64

interface Route {
  readonly methods: 'GET, HEAD' | 'POST'
  readonly answer: (
    req: IncomingMessage,
    res: ServerResponse,
    access: Access,
  ) => Answer | undefined | Promise<Answer | undefined>
}

export function createPageRoutes(
  { clock, overview, files, recent, explain, revoke, password, onBug, ...deps }: PageDependencies,
  reach: Reach,
): PageRoutes {
  const log = viewerLog(deps.log)
  const streams = createEventStreams(overview, clock, onBug)
  const sessions = createSessions(clock, (session) => streams.end(session))
  let stopped = false

  const logIn =
    password === undefined
      ? undefined
      : createLogin({
          clock,
          sessions,
          password,
          log,
          failed: (status, what) => failedLoginPage(files, status, what),
          goToPage,
        })
  const revokeGrants = createPageRevocation({ revoke, sessions, log })

  function openPage(access: Access): Answer | Promise<Answer> {
    if (access.kind === 'login') return loginPage(files)
    if (access.kind === 'off') return { status: 403, type: 'text/plain; charset=utf-8', body: access.reason }
    return indexPage(files)
  }

  function logOut(access: Access): Answer {
    if (access.kind === 'viewer' && access.session !== undefined) sessions.end(access.session)
    return goToPage({ 'Set-Cookie': sessions.clearedCookie })
  }

  function openStream(
    req: IncomingMessage,
    res: ServerResponse,
    { session, mayRevoke }: Viewer,
  ): Answer | undefined {
    if (req.method === 'HEAD') return { status: 200, type: 'text/event-stream' }
    if (stopped) return errorAnswer(503, 'stopping', 'The sidecar is stopping.', { Connection: 'close' })
    const mayView = (): boolean => session === undefined || sessions.keep(session)
    const view = queryOf(req).get('view')?.slice(0, LONGEST_VIEW)
    if (streams.open(req, res, { session, view, mayRevoke, mayView })) return undefined
    const description = 'As many pages are open as the sidecar serves. Close one of them.'
    return errorAnswer(503, 'too_many_viewers', description, { 'Retry-After': '10' })
  }

  function requests(req: IncomingMessage): Answer {
    const id = queryOf(req).get('id')
    if (id === null) return json(200, recent())
    const explanation = explain(id)
    return explanation === undefined
      ? errorAnswer(404, 'not_found', 'The sidecar does not remember this request.')
      : json(200, explanation)
  }

  const routes: ReadonlyMap<string, Route> = new Map<string, Route>([
    ['/', { methods: 'GET, HEAD', answer: (_req, _res, access) => openPage(access) }],
    ['/page/login', { methods: 'POST', answer: (req) => (logIn === undefined ? noLogin() : logIn(req)) }],
    ['/page/logout', { methods: 'POST', answer: (_req, _res, access) => logOut(access) }],
    ['/page/events', { methods: 'GET, HEAD', answer: forViewers(openStream) }],
    ['/page/requests', { methods: 'GET, HEAD', answer: forViewers(requests) }],
    [
      '/page/revoke',
      { methods: 'POST', answer: forViewers((req, _res, viewer) => revokeGrants(req, viewer)) },
    ],
  ])

  async function answerOf(
    req: IncomingMessage,
    res: ServerResponse,
    path: string,
  ): Promise<Answer | undefined> {
    const route = routes.get(path)
    if (route === undefined) return fileAnswer(files, req, path.slice('/page/'.length))
    // A failed login is shown at this address, so a reload may ask for it.
    if (path === '/page/login' && isRead(req)) return goToPage()
    if (!route.methods.split(', ').includes(req.method ?? '')) return methodNotAllowed(route.methods)
    // Pages of other sites may link to the page.
    const refused = path === '/' ? undefined : refuseCrossOrigin(req)
    if (refused !== undefined) return refused
    return route.answer(req, res, accessOf(req, password === undefined ? undefined : sessions, reach))
  }

  return {
    async answer(req, res, path) {
      const answer = await answerOf(req, res, path)
      return answer === undefined ? undefined : { ...answer, fields: { ...PAGE_FIELDS, ...answer.fields } }
    },
    endSessions: sessions.endAll,
    stop() {
      stopped = true
      streams.end()
    },
  }
}

function forViewers(
  answer: (
    req: IncomingMessage,
    res: ServerResponse,
    viewer: Viewer,
  ) => Answer | undefined | Promise<Answer | undefined>,
): Route['answer'] {
  return (req, res, access) => (access.kind === 'viewer' ? answer(req, res, access) : refuseAccess(access))
}

function queryOf({ url = '' }: IncomingMessage): URLSearchParams {
  return new URLSearchParams(url.replace(/^[^?]*/, ''))
}

function noLogin(): Answer {
  return errorAnswer(404, 'not_found', 'There is no login, because admin.password_file is not set.')
}

/** Relative to `/page/`, so that it works behind a proxy that adds a prefix to the path. */
function goToPage(fields: Readonly<Record<string, string>> = {}): Answer {
  return { status: 303, fields: { Location: '../', ...fields } }
}
