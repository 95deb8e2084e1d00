import { createSessionTable, type Session } from '../browser/session-table.ts'
import type { Identity } from '../http/admission.ts'
import { DEVICE_LOGIN_COOKIE, sessionIdsIn } from '../http/browsers.ts'
import type { Fields } from '../http/fields.ts'
import { nameOfGrant } from '../http/scope.ts'
import type { Clock } from '../system/clock.ts'
import type { Later } from '../system/later.ts'
import type { IssuedTokens } from '../tokens/mint.ts'
import { type End, grantsInFlight, type LiveRequests } from '../tokens/revocation.ts'
import type { Tokens } from '../tokens/token-store.ts'

const MOST_SESSIONS = 10_000

/** The tokens of a browser, which never gets them. */
interface Login {
  /** The grant of the login. A renewal keeps it. */
  readonly grant: string
  tokens: IssuedTokens
  /** The exchange of the refresh token, while it runs. */
  renewal: Promise<Awaited<ReturnType<Tokens['refresh']>>> | undefined
}

/** Why sessions end when `browser.login` is off: a value of the `reason` label of `postern_tokens_revoked_total`. */
const LOGIN_OFF = 'browser_login_off'

const NONE: Identity = { kind: 'refused', cause: 'missing' }
const UNAVAILABLE: Identity = { kind: 'unavailable' }

/** What sessions need of the requests in flight. */
interface LiveSessions extends Pick<LiveRequests, 'granted'> {
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
 * The sessions of browsers at the device. A session stands for a grant, and ends with it. Renewals with `tokens.rotate_refresh` do not
 * prolong a session.
 */
export function createSessions(
  tokens: Pick<Tokens, 'identify' | 'refresh'> & { readonly end: End },
  { clock, live, settings }: SessionDependencies,
) {
  const sessions = createSessionTable<Login>({
    clock,
    cookie: DEVICE_LOGIN_COOKIE,
    most: MOST_SESSIONS,
    idle: () => settings.config.browser.idle,
    lifetime() {
      const { refreshLifetime, grantLifetime } = settings.config.tokens
      return grantLifetime === 'off' ? refreshLifetime : Math.min(refreshLifetime, grantLifetime)
    },
    inFlight() {
      const grants = grantsInFlight(live)
      return ({ grant }) => grants.has(grant)
    },
    /**
     * Revokes their grants, even if a shared store does not answer: the tokens are nowhere else. All grants are revoked at once: each
     * revocation is written to disk, or told to the shared store.
     */
    onEnd(ended, reason) {
      const grants = ended.map(({ login }) => login.grant)
      return grants.length === 0 || tokens.end({ grants }, reason)
    },
  })
  const { has, endAll, sweep, clearedCookie } = sessions
  let closed = false

  /**
   * If the access token of a session is no longer valid, renews it. If the refresh token is refused, too, the session has ended with its
   * grant.
   */
  async function settled(session: Session<Login>, client: string, asked: Later<Identity>): Promise<Identity> {
    const found = await asked
    if (found.kind !== 'refused') return found
    const { login } = session
    login.renewal ??= Promise.resolve(tokens.refresh(login.tokens.refreshToken)).finally(() => {
      login.renewal = undefined
    })
    const issued = await login.renewal
    if (issued === 'unavailable') return UNAVAILABLE
    if (issued === undefined) {
      sessions.forget(session)
      return found
    }
    login.tokens = issued
    return tokens.identify(issued.accessToken, client)
  }

  return {
    has,
    sweep,
    clearedCookie,
    /**
     * Ends all sessions, and until `open` each session that begins: that of a login in flight. The result is that of `State.end` for the
     * sessions that were open.
     */
    close(): Later<boolean> {
      closed = true
      return endAll(LOGIN_OFF)
    },
    open(): void {
      closed = false
    },
    /**
     * The grant of a session, as `Tokens.identify` returns it. An access token that has expired is renewed first.
     *
     * @param at when the request came (ms on the monotonic clock), which is a use of the session
     */
    identify(id: string, client: string, at: number): Later<Identity> {
      const session = sessions.find(id, at)
      if (session === undefined) return NONE
      const asked = tokens.identify(session.login.tokens.accessToken, client)
      return asked instanceof Promise || asked.kind === 'refused' ? settled(session, client, asked) : asked
    },
    /** Begins a session with the tokens of a new grant. Returns the value of `Set-Cookie`; undefined if the session has ended at once. */
    begin(issued: IssuedTokens): string | undefined {
      const cookie = sessions.begin({ grant: issued.grant, tokens: issued, renewal: undefined })
      if (!closed) return cookie
      void endAll(LOGIN_OFF)
      return undefined
    },
    /** Ends the sessions that these fields carry, and their grants. */
    end: sessions.endCarriedBy,
    /**
     * The browser has logged in again, with `grant`: ends the session that these fields carry, if any. Its requests in flight go on with
     * the new grant. If that belongs to another name, they end, and the result is `ended`.
     */
    async replace(fields: Fields, grant: string): Promise<'ended' | 'continued'> {
      const session = sessions.carriedBy(fields)
      if (session === undefined) return 'continued'
      const { grant: earlier } = session.login
      const isSame = nameOfGrant(earlier) === nameOfGrant(grant)
      if (isSame) live.handOver(earlier, grant)
      await sessions.end([session])
      return isSame ? 'continued' : 'ended'
    },
    /** Whether these fields carry the cookie of a session; `ended`: of a session that is over. */
    stateOf(fields: Fields): 'open' | 'ended' | 'none' {
      const [id] = sessionIdsIn(fields, DEVICE_LOGIN_COOKIE)
      return id === undefined ? 'none' : has(id) ? 'open' : 'ended'
    },
  }
}
