import type { SessionAccount } from '../config/auth-fields.ts'
import type { OwnResponse } from '../device/own-request.ts'
import type { RequestLine } from '../device/request.ts'
import { fieldValues } from '../http/fields.ts'
import { loosePathOf, pathOf } from '../http/request-path.ts'
import { namesOf, sessionIn } from './device-session.ts'
import { expirySigns } from './expiry-signs.ts'
import { loginBody } from './login-body.ts'
import { type Ask, checkedLogin, type LoginResult, type Scheme } from './scheme.ts'
import { createLogout, type SessionDevice } from './session-logout.ts'
import { isByCookies, tokenPlace } from './session-token.ts'

/** With these the device refuses the account. Any other error status says nothing about the password. */
const WRONG: readonly number[] = [400, 401, 403, 422]

/**
 * A session of the device's own: the response to a login sets cookies, or holds a token, or both, and later requests carry them. Examples
 * are login forms, Redfish (DSP0266 §13.3.4), the `X-Transmission-Session-Id` of transmission, and APIs with a session id in JSON.
 * Redirects are evaluated but not followed.
 */
export function createSessionScheme(account: SessionAccount, device: SessionDevice): Scheme {
  const { session: settings, checkPath } = account
  const { login, token } = settings
  const signs = expirySigns(settings)
  const { page = login.path } = login
  const byCookies = isByCookies(settings)
  const endSession = createLogout(settings, device)
  const ask: Ask = signs.looksAtBodies ? (request) => device.ask({ ...request, keepsBody: true }) : device.ask
  const loginPaths = new Set([login.path, page].map(loosePathOf))

  const leadsToLogin = ({ target }: RequestLine, { status, fields }: OwnResponse): boolean =>
    status >= 300 && status < 400 && leadsTo(fieldValues(fields, 'location')[0], target, pathOf(page))
  const asksByHead = (request: RequestLine, response: OwnResponse): boolean =>
    signs.hasStatus(response) || leadsToLogin(request, response)
  const asksToSignIn = (request: RequestLine, response: OwnResponse): boolean =>
    asksByHead(request, response) || signs.areIn(response)

  // A client that signs in at the device itself, through the sidecar, gets the same for a wrong password. Where a token is named, other
  // requests may have the path of the login, too: to an API with sessions as resources, each of them.
  const isLogin = ({ method, target }: RequestLine): boolean =>
    method === login.method && loosePathOf(target) === loosePathOf(login.path)
  const isClients = (request: RequestLine, { status }: OwnResponse): boolean =>
    (byCookies && isLogin(request)) ||
    ((token === undefined || status < 400) && loginPaths.has(loosePathOf(request.target)))
  // An API with errors in JSON often has one path for all requests, and another code for a wrong password. So its path does not show a login.
  const isChallenge: Scheme['isChallenge'] = (request, response) =>
    (asksByHead(request, response) && !isClients(request, response)) ||
    (signs.areIn(response) && !(byCookies && isLogin(request)))

  async function submit(password: string): Promise<LoginResult> {
    const line = { method: login.method, target: login.path }
    const keepsBody = token !== undefined && 'json' in token
    const response = await ask({ ...line, keepsBody, ...loginBody(account, password) })
    const { status } = response
    const leadsBack = leadsToLogin(line, response) || signs.areIn(response)
    // transmission sends its token with the same status that asks for it. Many devices set a cookie with each refusal.
    const isAccepted = status < 400 ? !leadsBack : signs.hasStatus(response) && !byCookies
    const session = isAccepted ? sessionIn(response, settings, device.clock) : undefined
    if (session !== undefined) {
      if (checkPath !== undefined) session.proven = true
      if (endSession !== undefined) session.end = () => endSession(session, response)
      return { kind: 'right', session }
    }
    if (WRONG.includes(status) || leadsBack || (status < 400 && byCookies)) return { kind: 'wrong' }
    const missing =
      status < 400 && token !== undefined
        ? ` without a token (${tokenPlace(token)}): a wrong password, or key`
        : ''
    return { kind: 'unusable', reason: `the login at ${login.path} answered ${status}${missing}` }
  }

  const probe: Scheme['probe'] = async (session) => {
    const line = { method: 'GET', target: checkPath ?? '/' }
    const { fields, nonce } = session.credentialsFor(line)
    const response = await ask({ ...line, fields })
    if (isChallenge(line, response)) return false
    session.accepted?.(line, response, nonce, true)
    return response.status < 400 ? true : undefined
  }

  return {
    isChallenge,
    hidesChallenge: signs.mayBeIn,
    names: namesOf(settings),
    // A device with tokens reports an expired one by a status or in JSON, and then it has not acted on the request.
    ...((byCookies || checkPath !== undefined) && { probe }),
    login: (password) =>
      checkPath === undefined
        ? submit(password)
        : checkedLogin(checkPath, ask, asksToSignIn, 'a login', () => submit(password)),
  }
}

function leadsTo(location: string | undefined, from: string, page: string): boolean {
  const url = location === undefined ? null : URL.parse(location, `http://device${from}`)
  // Servlets append `;jsessionid=` for a client whose cookies they do not know.
  return url?.pathname === page || url?.pathname.split(';', 1)[0] === page
}
