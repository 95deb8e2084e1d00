import type { IncomingMessage } from 'node:http'
import type { Logger } from '../record/log.ts'
import { BY_OPERATOR } from '../tokens/revocation.ts'
import type { Tokens } from '../tokens/token-store.ts'
import {
  type AdminResponse,
  clientOf,
  errorResponse,
  json,
  readSmallBody,
  storeUnavailable,
  tooLarge,
} from './admin-response.ts'
import { readRevocation } from './operator-revocation.ts'
import { loginRequired, refuseRevocation, type Viewer } from './page-access.ts'
import type { PageSessions } from './page-sessions.ts'

/** The form of an id by `mintGrantId`. */
const GRANT_ID = /^(?:[\w-]{1,32}\.)?[\da-f]{16}$/

/** Answers `POST page/revoke` of a viewer, `{"all": true}` or `{"grant": ID}`, with the number of revoked grants. */
export function createPageRevocation(
  { revoke }: Pick<Tokens, 'revoke'>,
  sessions: Pick<PageSessions, 'find'>,
  log: Logger,
): (req: IncomingMessage, viewer: Viewer) => Promise<AdminResponse> {
  return async (req, { session, mayRevoke }) => {
    if (!mayRevoke) return refuseRevocation()
    // No form can send this type, so another site would need the consent of this one (CORS preflight).
    if (!/^application\/json *(?:;|$)/i.test(req.headers['content-type'] ?? '')) {
      return errorResponse(415, 'unsupported_media_type', 'Send application/json.')
    }
    const body = await readSmallBody(req)
    if (body === undefined) return tooLarge()
    const which = readRevocation(String(body))
    if (which === undefined || 'client' in which || ('grant' in which && !GRANT_ID.test(which.grant))) {
      return errorResponse(400, 'invalid_request', 'Name what to revoke: {"all": true} or {"grant": ID}.')
    }
    // The session may have ended while the body came in.
    if (session !== undefined && sessions.find(session.id) === undefined) return loginRequired()
    const revoked = await revoke(which, BY_OPERATOR)
    if (revoked === 'unavailable')
      return storeUnavailable('The shared store does not respond, or refuses the command.')
    if (revoked > 0) {
      const what = { client: clientOf(req), which: 'all' in which ? 'all' : which.grant, grants: revoked }
      log.warn(what, 'live page: tokens revoked')
    }
    return json(200, { revoked })
  }
}
