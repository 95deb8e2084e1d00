import type { Identity } from '../http/admission.ts'
import { SESSION_COOKIE, sessionCookieIn } from '../http/browsers.ts'
import type { Fields } from '../http/fields.ts'
import { nameOfGrant } from '../http/scope.ts'
import type { Clock } from '../system/clock.ts'
import type { Later } from '../system/later.ts'
import { type IssuedTokens, mintToken } from '../tokens/mint.ts'
import { grantsInFlight, type LiveRequests } from '../tokens/revocation.ts'
import type { State } from '../tokens/state.ts'
import type { Tokens } from '../tokens/token-store.ts'

const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Strict'

/** Sessions of browsers that never log out pile up. Above this number, the session that began first ends. */
const MOST_SESSIONS = 10_000

/** The tokens of a browser, which never gets them. */
interface Session {
  /** The grant of the login. A renewal keeps it. */
  readonly grant: string
  tokens: IssuedTokens
  /** When the last request came, or when one was last seen in flight (ms on the monotonic clock). */
  usedAt: number
  /** When the session ends, however it is used (ms on the monotonic clock). Renewals with `tokens.rotate_refresh` do not prolong it. */
  readonly endsAt: number
  /** The exchange of the refresh token, while it runs. */
  renewal: Promise<Awaited<ReturnType<Tokens['refresh']>>> | undefined
}

/** Why sessions end when `browser.login` is switched off: a value of the `reason` label of `postern_tokens_revoked_total`. */
export const LOGIN_OFF = 'browser_login_off'

/**
 * Why a session ends after `browser.idle` without a request, and after the lifetime of its first refresh token: further values, as
 * `LOGIN_OFF`.
 */
const IDLE = 'browser_idle'
const OVER = 'browser_session_over'

/** The value of `Set-Cookie` that removes the cookie. */
export const CLEARED_COOKIE = `${SESSION_COOKIE}=; ${ATTRIBUTES}; Max-Age=0`

const NONE: Identity = { kind: 'refused', cause: 'missing' }
const UNAVAILABLE: Identity = { kind: 'unavailable' }

/** What sessions need of the requests in flight. */
export interface LiveSessions extends Pick<LiveRequests, 'granted'> {
  /** The requests in flight of the first grant go on with the second one. */
  handOver(from: string, to: string): void
}

interface SessionDependencies {
  readonly clock: Clock
  readonly live: LiveSessions
  /** A reload replaces `config`. Times in ms. */
  readonly settings: {
    readonly config: {
      readonly browser: { readonly idle: number }
      readonly tokens: { readonly refreshLifetime: number; readonly grantLifetime: number | 'off' }
    }
  }
}

export type Sessions = ReturnType<typeof createSessions>

/**
 * The sessions of browsers. A session stands for a grant, and is found by a random id in a cookie. Only the sidecar chooses ids, so a
 * cookie that an attacker sets gains nothing (session fixation). A look-up compares a hash of the whole id with a secret seed, so its time
 * tells nothing about a part of the id.
 */
export function createSessions(
  tokens: Pick<Tokens, 'identify' | 'refresh'> & Pick<State, 'end'>,
  { clock, live, settings }: SessionDependencies,
) {
  const sessions = new Map<string, Session>()

  /**
   * If the access token of a session is no longer valid, renews it. If the refresh token is refused, too, the session has ended with its
   * grant.
   */
  async function settled(
    id: string,
    session: Session,
    client: string,
    asked: Later<Identity>,
  ): Promise<Identity> {
    const found = await asked
    if (found.kind !== 'refused') return found
    session.renewal ??= Promise.resolve(tokens.refresh(session.tokens.refreshToken)).finally(() => {
      session.renewal = undefined
    })
    const issued = await session.renewal
    if (issued === 'unavailable') return UNAVAILABLE
    if (issued === undefined) {
      sessions.delete(id)
      return found
    }
    session.tokens = issued
    return tokens.identify(issued.accessToken, client)
  }

  /** Ends a session at once, even if a shared store does not answer: its tokens are nowhere else. */
  function drop(id: string, reason = 'client'): Later<boolean> {
    const session = sessions.get(id)
    sessions.delete(id)
    return session === undefined || tokens.end({ grants: [session.grant] }, reason)
  }

  /** Why a session is over at this time (ms on the monotonic clock); undefined if it is not. */
  function endOf({ usedAt, endsAt }: Session, now: number): string | undefined {
    if (now >= endsAt) return OVER
    return now - usedAt >= settings.config.browser.idle ? IDLE : undefined
  }

  /** Whether a request in flight uses a session that seems idle: `sweep` may have looked a second ago, or longer. */
  function isInUse({ grant }: Session): boolean {
    return grantsInFlight(live).has(grant)
  }

  return {
    has: (id: string): boolean => sessions.has(id),
    /**
     * The grant of a session, as `Tokens.identify` returns it. An access token that has expired is renewed first.
     *
     * @param at when the request came (ms on the monotonic clock), which is a use of the session
     */
    identify(id: string, client: string, at: number): Later<Identity> {
      const session = sessions.get(id)
      if (session === undefined) return NONE
      const end = endOf(session, at)
      if (end === OVER || (end === IDLE && !isInUse(session))) {
        void drop(id, end)
        return NONE
      }
      session.usedAt = at
      const asked = tokens.identify(session.tokens.accessToken, client)
      return asked instanceof Promise || asked.kind === 'refused'
        ? settled(id, session, client, asked)
        : asked
    },
    /** Begins a session with the tokens of a new grant. Returns the value of `Set-Cookie`. */
    begin(issued: IssuedTokens): string {
      const [first] = sessions.keys()
      if (first !== undefined && sessions.size >= MOST_SESSIONS) void drop(first)
      const id = mintToken()
      const now = clock.monotonic()
      const { refreshLifetime, grantLifetime } = settings.config.tokens
      const endsAt =
        now + (grantLifetime === 'off' ? refreshLifetime : Math.min(refreshLifetime, grantLifetime))
      sessions.set(id, { grant: issued.grant, tokens: issued, usedAt: now, endsAt, renewal: undefined })
      return `${SESSION_COOKIE}=${id}; ${ATTRIBUTES}`
    },
    /** Ends all sessions, and their grants for good: no later setting brings them back. */
    endAll(reason: string): Later<boolean> {
      const grants = Array.from(sessions.values(), ({ grant }) => grant)
      sessions.clear()
      return grants.length === 0 || tokens.end({ grants }, reason)
    },
    /** Ends the session that these fields carry, if any, and its grant. */
    end(fields: Fields): Later<boolean> {
      const id = sessionCookieIn(fields)
      return id === undefined || drop(id)
    },
    /**
     * The browser has logged in again, with `grant`: ends the session that these fields carry, if any. Its requests in flight go on with
     * the new grant. If that belongs to another name, they end, and the result is `ended`.
     */
    async replace(fields: Fields, grant: string): Promise<'ended' | 'continued'> {
      const id = sessionCookieIn(fields)
      const session = id === undefined ? undefined : sessions.get(id)
      if (id === undefined || session === undefined) return 'continued'
      const { grant: earlier } = session
      const isSame = nameOfGrant(earlier) === nameOfGrant(grant)
      if (isSame) live.handOver(earlier, grant)
      await drop(id)
      return isSame ? 'continued' : 'ended'
    },
    /** Ends the sessions that are over. A request in flight, such as an open stream, is a use. Call it about once a second. */
    sweep(): void {
      if (sessions.size === 0) return
      const now = clock.monotonic()
      const inFlight = grantsInFlight(live)
      /**
       * The grants by reason. All grants of a reason are revoked at once: each revocation is written to disk, or told to the shared store.
       */
      const over = new Map<string, string[]>()
      for (const [id, session] of sessions) {
        const { grant } = session
        if (inFlight.has(grant)) session.usedAt = now
        const reason = endOf(session, now)
        if (reason === undefined) continue
        sessions.delete(id)
        over.set(reason, [...(over.get(reason) ?? []), grant])
      }
      for (const [reason, grants] of over) void tokens.end({ grants }, reason)
    },
    /** Whether these fields carry the cookie of a session; `ended`: of a session that is over. */
    stateOf(fields: Fields): 'open' | 'ended' | 'none' {
      const id = sessionCookieIn(fields)
      return id === undefined ? 'none' : sessions.has(id) ? 'open' : 'ended'
    },
  }
}
