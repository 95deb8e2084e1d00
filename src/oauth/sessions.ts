import type { Identity } from '../http/admission.ts'
import { SESSION_COOKIE, sessionCookieIn } from '../http/browsers.ts'
import type { Fields } from '../http/fields.ts'
import { mintToken, type RandomBytes } from '../tokens/mint.ts'
import type { IssuedTokens, Later, Tokens } from '../tokens/state.ts'

const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Strict'

/** Sessions of browsers that never log out pile up. Past this number, the one that began first ends. */
const MOST_SESSIONS = 10_000

/** The tokens of a browser, which never gets them. */
interface Session {
  tokens: IssuedTokens
  /** The exchange of the refresh token, while a shared store is asked. */
  renewal: Promise<Renewed> | undefined
}

/** `unavailable`: the shared store did not respond. */
type Renewed = 'live' | 'over' | 'unavailable'

/** The sessions of browsers: each stands for a grant, and is found by a random id in a cookie. */
export interface Sessions {
  has(id: string): boolean
  /** The grant of a session, as `Tokens.identify` says it. An access token that has expired is renewed first. */
  identify(id: string, client: string): Later<Identity>
  /** Begins a session with the tokens of a new grant, and returns the value of `Set-Cookie`. */
  begin(tokens: IssuedTokens): string
  /** Ends the session of these fields, if there is one, with its grant. */
  end(fields: Fields): Later<number | 'unavailable'>
}

/** The value of `Set-Cookie` that removes the cookie. */
export const CLEARED_COOKIE = `${SESSION_COOKIE}=; ${ATTRIBUTES}; Max-Age=0`

const NONE: Identity = { kind: 'refused', cause: 'missing' }
const UNAVAILABLE: Identity = { kind: 'unavailable' }

/**
 * Only the sidecar chooses ids, so a cookie that an attacker sets gains nothing (fixation). A look-up compares the hash of the whole id
 * by a secret seed, so its time tells nothing about a part of it.
 */
export function createSessions(
  tokens: Pick<Tokens, 'identify' | 'refresh' | 'revoke'>,
  random: RandomBytes,
): Sessions {
  const sessions = new Map<string, Session>()

  function identify(id: string, client: string): Later<Identity> {
    const session = sessions.get(id)
    if (session === undefined) return NONE
    const found = tokens.identify(session.tokens.accessToken, client)
    return found instanceof Promise
      ? found.then((identity) => settled(id, session, client, identity))
      : settled(id, session, client, found)
  }

  /** A session whose access token is no longer valid goes on with a new one, or has ended with its grant. */
  function settled(id: string, session: Session, client: string, found: Identity): Later<Identity> {
    if (found.kind !== 'refused') return found
    const goOn = (renewed: Renewed): Later<Identity> => {
      if (renewed === 'unavailable') return UNAVAILABLE
      return renewed === 'live' ? tokens.identify(session.tokens.accessToken, client) : found
    }
    const renewed = renew(id, session)
    return renewed instanceof Promise ? renewed.then(goOn) : goOn(renewed)
  }

  function renew(id: string, session: Session): Later<Renewed> {
    if (session.renewal !== undefined) return session.renewal
    const refreshed = tokens.refresh(session.tokens.refreshToken)
    const keep = (issued: Awaited<typeof refreshed>): Renewed => {
      session.renewal = undefined
      if (issued === 'unavailable') return issued
      if (issued === undefined) {
        sessions.delete(id)
        return 'over'
      }
      session.tokens = issued
      return 'live'
    }
    if (!(refreshed instanceof Promise)) return keep(refreshed)
    session.renewal = refreshed.then(keep)
    return session.renewal
  }

  function drop(id: string): Later<number | 'unavailable'> {
    const session = sessions.get(id)
    sessions.delete(id)
    return session === undefined ? 0 : tokens.revoke({ token: session.tokens.refreshToken }, 'client')
  }

  return {
    has: (id) => sessions.has(id),
    identify,
    begin(issued) {
      const [first] = sessions.keys()
      if (first !== undefined && sessions.size >= MOST_SESSIONS) void drop(first)
      const id = mintToken(random)
      sessions.set(id, { tokens: issued, renewal: undefined })
      return `${SESSION_COOKIE}=${id}; ${ATTRIBUTES}`
    },
    end(fields) {
      const id = sessionCookieIn(fields)
      return id === undefined ? 0 : drop(id)
    },
  }
}
