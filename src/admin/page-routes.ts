import type { IncomingMessage, ServerResponse } from 'node:http'
import { isRead } from '../http/scope.ts'
import type { Overview } from '../overview/overview.ts'
import type { Logger } from '../record/log.ts'
import type { RecentRequests } from '../record/recent-requests.ts'
import type { Clock } from '../system/clock.ts'
import type { Tokens } from '../tokens/token-store.ts'
import {
  type AdminResponse,
  errorResponse,
  json,
  methodNotAllowed,
  PAGE_FIELDS,
  storeUnavailable,
} from './admin-response.ts'
import { refuseCrossOrigin } from './cross-origin.ts'
import { createEventStreams } from './event-streams.ts'
import { type Access, accessOf, CHALLENGE, type Reach, refuseAccess, type Viewer } from './page-access.ts'
import type { PageFiles } from './page-files.ts'
import { createLogin, goToPage, loginPage, type PagePassword } from './page-login.ts'
import { createPageRevocation } from './page-revocation.ts'
import { createPageSessions } from './page-sessions.ts'

export interface PageDependencies {
  readonly clock: Clock
  readonly overview: Overview
  /** Called when the first viewer comes. */
  readonly files: PageFiles
  readonly requests: Pick<RecentRequests, 'recent' | 'explain'>
  readonly tokens: Pick<Tokens, 'revoke'>
  /** `isSet`: there is `admin.password_file`. */
  readonly password: PagePassword
  /** Whether the listener serves TLS only. */
  readonly secure: boolean
  readonly log: Logger
  readonly onBug: (error: unknown) => void
}

export type PageRoutes = ReturnType<typeof createPageRoutes>

/** The characters of the id of a view that are compared. */
const LONGEST_VIEW = 64

/** The longest text to search for (characters): more than an address and an id together. */
const LONGEST_SEARCH = 100

type Handler<Who> = (
  req: IncomingMessage,
  res: ServerResponse,
  who: Who,
) => AdminResponse | undefined | Promise<AdminResponse | undefined>

interface Route {
  readonly methods: 'GET, HEAD' | 'POST'
  readonly answer: Handler<Access>
}

export function createPageRoutes(
  { clock, overview, files, requests, tokens, password, secure, log, onBug }: PageDependencies,
  reach: Reach,
) {
  const streams = createEventStreams(overview, clock, onBug)
  const sessions = createPageSessions(clock, secure, (session) => streams.end(session))
  let stopped = false
  const logIn = createLogin({ clock, sessions, password, log })
  const revokeGrants = createPageRevocation(tokens, sessions, log)

  async function openPage(access: Access): Promise<AdminResponse> {
    if (access.kind === 'off') return { status: 403, type: 'text/plain; charset=utf-8', body: access.reason }
    if (access.kind === 'login') return loginPage(401, 'page/', CHALLENGE)
    const page = (await files()).get('index.html')
    if (page === undefined) throw new TypeError('the page has no index.html')
    return { status: 200, type: page.type, body: page.body }
  }

  function logOut(req: IncomingMessage): AdminResponse {
    sessions.endCarriedBy(req.rawHeaders)
    return goToPage({ 'Set-Cookie': sessions.clearedCookie })
  }

  const openStream: Handler<Viewer> = (req, res, { session, mayRevoke }) => {
    if (req.method === 'HEAD') return { status: 200, type: 'text/event-stream' }
    if (stopped) return errorResponse(503, 'stopping', 'The sidecar is stopping.', { Connection: 'close' })
    const mayView = (): boolean =>
      session === undefined ? !password.isSet : sessions.find(session.id) !== undefined
    const view = queryOf(req).get('view')?.slice(0, LONGEST_VIEW)
    if (streams.open(req, res, { session, view, mayRevoke, mayView })) return undefined
    const description = 'As many pages are open as the sidecar serves. Close one of them.'
    return errorResponse(503, 'too_many_viewers', description, { 'Retry-After': '10' })
  }

  function listRequests(req: IncomingMessage): AdminResponse {
    const id = queryOf(req).get('id')
    if (id === null) return json(200, requests.recent())
    // If a trusted proxy sent the id twice, the page shows the latest request, and `postern explain` all.
    const [explanation] = requests.explain(id)
    return explanation === undefined
      ? errorResponse(404, 'not_found', 'The sidecar does not remember this request.')
      : json(200, explanation)
  }

  async function findGrants(req: IncomingMessage): Promise<AdminResponse> {
    const text = queryOf(req).get('find')?.trim() ?? ''
    if (text === '' || text.length > LONGEST_SEARCH)
      return errorResponse(400, 'invalid_request', `Send find with 1 to ${LONGEST_SEARCH} characters.`)
    const found = await overview.findGrants(text)
    if (found === 'busy')
      return errorResponse(503, 'busy', 'Too many searches wait. Try again.', { 'Retry-After': '1' })
    return found === 'unavailable' ? storeUnavailable('The shared store does not respond.') : json(200, found)
  }

  const routes: ReadonlyMap<string, Route> = new Map<string, Route>([
    ['/', { methods: 'GET, HEAD', answer: (_req, _res, access) => openPage(access) }],
    ['/page/login', { methods: 'POST', answer: (req) => (password.isSet ? logIn(req) : noLogin()) }],
    ['/page/logout', { methods: 'POST', answer: logOut }],
    ['/page/events', { methods: 'GET, HEAD', answer: forViewers(openStream) }],
    ['/page/requests', { methods: 'GET, HEAD', answer: forViewers(listRequests) }],
    ['/page/grants', { methods: 'GET, HEAD', answer: forViewers(findGrants) }],
    ['/page/revoke', { methods: 'POST', answer: forViewers((req, _res, who) => revokeGrants(req, who)) }],
  ])

  /** A file that a page loads. It needs no login: its content is the same for every viewer. */
  async function fileResponse(req: IncomingMessage, name: string): Promise<AdminResponse> {
    const file = name.endsWith('.html') ? undefined : (await files()).get(name)
    if (file === undefined) return errorResponse(404, 'not_found', 'The page has no such file.')
    if (!isRead(req.method)) return methodNotAllowed('GET, HEAD')
    const fields = { ETag: file.etag, 'Cache-Control': 'no-cache' }
    return req.headers['if-none-match'] === file.etag
      ? { status: 304, fields }
      : { status: 200, type: file.type, body: file.body, fields }
  }

  async function answerOf(
    req: IncomingMessage,
    res: ServerResponse,
    path: string,
  ): Promise<AdminResponse | undefined> {
    const route = routes.get(path)
    if (route === undefined) return fileResponse(req, path.slice('/page/'.length))
    // A failed login is shown at this address, so the browser requests it when the viewer reloads.
    if (path === '/page/login' && isRead(req.method)) return goToPage()
    if (!route.methods.split(', ').includes(req.method ?? '')) return methodNotAllowed(route.methods)
    // Not for `/`: other sites may link to the page.
    const refused = path === '/' ? undefined : refuseCrossOrigin(req)
    if (refused !== undefined) return refused
    return route.answer(req, res, accessOf(req, password.isSet ? sessions : undefined, reach))
  }

  return {
    /**
     * Resolves with the response, or with undefined if a stream of events is the response. Rejects with `ClientGone` if the client left,
     * and for a bug.
     */
    async answer(
      req: IncomingMessage,
      res: ServerResponse,
      path: string,
    ): Promise<AdminResponse | undefined> {
      const response = await answerOf(req, res, path)
      return response === undefined
        ? undefined
        : { ...response, fields: { ...PAGE_FIELDS, ...response.fields } }
    },
    unread: streams.unread,
    /** Ends all sessions with their streams, because the password has changed. */
    endSessions: sessions.endAll,
    /** Ends all streams. No new one begins. */
    stop(): void {
      stopped = true
      streams.end()
    },
  }
}

function forViewers(answer: Handler<Viewer>): Handler<Access> {
  return (req, res, access) => (access.kind === 'viewer' ? answer(req, res, access) : refuseAccess(access))
}

function queryOf({ url = '' }: IncomingMessage): URLSearchParams {
  return new URLSearchParams(url.replace(/^[^?]*/, ''))
}

function noLogin(): AdminResponse {
  return errorResponse(404, 'not_found', 'There is no login, because admin.password_file is not set.')
}
