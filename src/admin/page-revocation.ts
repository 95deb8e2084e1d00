import type { IncomingMessage } from 'node:http'
import type { Tokens } from '../tokens/token-contract.ts'
import { type Answer, clientOf, errorAnswer, json } from './answer.ts'
import { readRevocation } from './operator-revocation.ts'
import { loginRequired, refuseRevocation, type Viewer } from './page-access.ts'
import type { PageLog } from './page-login.ts'
import type { Sessions } from './sessions.ts'
import { readSmallBody, tooLarge } from './small-body.ts'

/** As `mintGrantId` makes it. */
const GRANT_ID = /^[\da-f]{16}$/

/** Answers `POST page/revoke` of a viewer: `{"all": true}` or `{"grant": ID}`, with the number of revoked grants. */
export function createPageRevocation({
  revoke,
  sessions,
  log,
}: {
  readonly revoke: Tokens['revoke']
  readonly sessions: Pick<Sessions, 'keep'>
  readonly log: Pick<PageLog, 'revoked'>
}): (req: IncomingMessage, viewer: Viewer) => Promise<Answer> {
  return async (req, { session, mayRevoke }) => {
    if (!mayRevoke) return refuseRevocation()
    // No form can send this type, so no other site can without asking first (CORS).
    if (!/^application\/json *(?:;|$)/i.test(req.headers['content-type'] ?? '')) {
      return errorAnswer(415, 'unsupported_media_type', 'Send application/json.')
    }
    const body = await readSmallBody(req)
    if (body === undefined) return tooLarge()
    const which = readRevocation(body)
    if (which === undefined || 'client' in which || ('grant' in which && !GRANT_ID.test(which.grant))) {
      return errorAnswer(400, 'invalid_request', 'Name what to revoke: {"all": true} or {"grant": ID}.')
    }
    // The session may have ended while the body came in.
    if (session !== undefined && !sessions.keep(session)) return loginRequired()
    const revoked = await revoke(which, 'operator')
    if (revoked === 'unavailable') {
      const description = 'The shared store does not respond, or refuses the command.'
      return errorAnswer(503, 'store_unavailable', description, { 'Retry-After': '5' })
    }
    if (revoked > 0) log.revoked(clientOf(req), 'all' in which ? 'all' : which.grant, revoked)
    return json(200, { revoked })
  }
}
