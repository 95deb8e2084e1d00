import type { IncomingMessage } from 'node:http'
import { UNIX_PEER } from '../gate/client-address.ts'
import { normalizeAddress, prefix64 } from '../http/ip.ts'
import type { Logger } from '../record/log.ts'
import type { Revocation, Tokens } from '../tokens/state.ts'
import {
  type Answer,
  clientOf,
  errorAnswer,
  json,
  readSmallBody,
  storeUnavailable,
  tooLarge,
} from './answer.ts'
import { loginRequired, type PageSessions, refuseRevocation, type Viewer } from './page-access.ts'

/** What an operator can revoke: everything, the grants of one client, or one grant. */
export type OperatorRevocation = Extract<
  Revocation,
  { readonly all: true } | { readonly client: string } | { readonly grant: string }
>

/** Parses the body of a `revoke` command. Undefined unless it names exactly one of the three, with a valid address. */
export function readRevocation(text: string): OperatorRevocation | undefined {
  const value = parse(text)
  if (value === null || typeof value !== 'object' || Object.keys(value).length !== 1) return undefined
  if ('all' in value && value.all === true) return { all: true }
  if ('grant' in value && typeof value.grant === 'string') return { grant: value.grant }
  if (!('client' in value) || typeof value.client !== 'string') return undefined
  const client = clientKeyOf(value.client)
  return client === undefined ? undefined : { client }
}

/**
 * The key of an address in the rate limits (C17). IPv4 and IPv4-mapped: the IPv4 address. IPv6: its /64. `unix`: itself.
 * Undefined for anything else, such as a range other than a /64.
 */
export function clientKeyOf(text: string): string | undefined {
  if (text === UNIX_PEER) return UNIX_PEER
  const address = normalizeAddress(text.replace(/(:.*)\/64$/, '$1'))
  return address === undefined ? undefined : prefix64(address)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** As `mintGrantId` makes it. */
const GRANT_ID = /^(?:[\w-]{1,32}\.)?[\da-f]{16}$/

/** Answers `POST page/revoke` of a viewer: `{"all": true}` or `{"grant": ID}`, with the number of revoked grants. */
export function createPageRevocation(
  { revoke }: Pick<Tokens, 'revoke'>,
  sessions: Pick<PageSessions, 'keep'>,
  log: Logger,
): (req: IncomingMessage, viewer: Viewer) => Promise<Answer> {
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
    if (revoked === 'unavailable')
      return storeUnavailable('The shared store does not respond, or refuses the command.')
    if (revoked > 0) {
      const what = { client: clientOf(req), which: 'all' in which ? 'all' : which.grant, grants: revoked }
      log.warn(what, 'live page: tokens revoked')
    }
    return json(200, { revoked })
  }
}
