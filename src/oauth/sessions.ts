import type { Identity } from '../http/admission.ts'
import { type Fields, fieldValues, withoutBlanks } from '../http/fields.ts'
import { looksMinted, mintToken, type RandomBytes } from '../tokens/mint.ts'
import type { IssuedTokens, Tokens } from '../tokens/token-contract.ts'

/** `__Host-`: browsers accept it only over TLS, for this host alone, and from no other host of the domain. */
const COOKIE = '__Host-postern'
const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Strict'

/** More would only be kept of people who never signed out. The one that began first ends. */
const MOST_SESSIONS = 10_000

/** The tokens of a browser, which never get them. */
interface Session {
  tokens: IssuedTokens
  /** The exchange of the refresh token, while a shared store is asked. */
  renewal: Promise<boolean> | undefined
}

type Later<T> = T | Promise<T>

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
export const CLEARED_COOKIE = `${COOKIE}=; ${ATTRIBUTES}; Max-Age=0`

const NONE: Identity = { kind: 'refused', cause: 'missing' }

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
    const renewed = renew(id, session)
    if (typeof renewed === 'boolean')
      return renewed ? tokens.identify(session.tokens.accessToken, client) : found
    return renewed.then(
      (isLive): Later<Identity> =>
        isLive ? tokens.identify(session.tokens.accessToken, client) : sessions.has(id) ? UNAVAILABLE : found,
    )
  }

  function renew(id: string, session: Session): Later<boolean> {
    if (session.renewal !== undefined) return session.renewal
    const refreshed = tokens.refresh(session.tokens.refreshToken)
    const keep = (issued: Awaited<typeof refreshed>): boolean => {
      session.renewal = undefined
      if (issued === 'unavailable') return false
      if (issued === undefined) sessions.delete(id)
      else session.tokens = issued
      return issued !== undefined
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
      return `${COOKIE}=${id}; ${ATTRIBUTES}`
    },
    end(fields) {
      const id = sessionIdIn(fields)
      return id === undefined ? 0 : drop(id)
    },
  }
}

const UNAVAILABLE: Identity = { kind: 'unavailable' }

const PAIR = new RegExp(`(?:^|;)[ \\t]*${COOKIE}=([^;]*)`, 'g')

/**
 * The id in the cookie of a session; undefined if there is none, or if there are several cookies of that name: a browser has one, and
 * another is an attempt to choose the session (cookie tossing). Other cookies may contain the name: anyone in the domain can set them.
 */
export function sessionIdIn(fields: Fields): string | undefined {
  const ids = fieldValues(fields, 'cookie').flatMap((cookies) =>
    cookies.includes(COOKIE) ? [...cookies.matchAll(PAIR)].map(([, id = '']) => withoutBlanks(id)) : [],
  )
  const [id = ''] = ids
  return ids.length === 1 && looksMinted(id) ? id : undefined
}
