import type { Exchange } from '../http/exchange.ts'
import { nameOfGrant, type Scopes } from '../http/scope.ts'
import { type Clock, nextTurn } from '../system/clock.ts'
import type { LogIn, LogInResult } from '../tokens/issuing.ts'
import type { Revocation } from '../tokens/revocation.ts'
import type { Tokens } from '../tokens/token-store.ts'
import { KnownClients, MOST_KNOWN } from './known-clients.ts'
import { GUESSING, type GuessSummary, WrongPasswords } from './wrong-passwords.ts'

/** How often the live grants are read (ms). In a fleet, other sidecars issue some of them. */
const READ_EVERY = 60_000

/** How many grants are read in a turn of the event loop: about a millisecond. */
const READ_PER_TURN = 100

interface Dependencies {
  readonly clock: Clock
  /** A reload replaces what it holds. */
  readonly settings: {
    readonly gate: { readonly scopes: Scopes | undefined }
    readonly config: { readonly tokens: { readonly refreshLifetime: number } }
  }
  /** Called when guessing begins. It is called again only after some minutes without guessing. */
  readonly onGuessing: (guesses: GuessSummary) => void
  /** Called once during a time of guessing, when a login is refused because too many wait. */
  readonly onCrowded: (guesses: GuessSummary) => void
  readonly onBug: (error: unknown) => void
}

export type LoginHistory = ReturnType<typeof createLoginHistory>

/**
 * Remembers right and wrong passwords by client. This decides which clients go first while passwords wait (`Precedence` in
 * `password/weighted-turns.ts`). A client is known only while the name of its grant has no `allow`: otherwise a client with the password of a
 * restricted name could guess another password with precedence.
 */
export function createLoginHistory({ clock, settings, onGuessing, onCrowded, onBug }: Dependencies) {
  const known = new KnownClients(clock, () => settings.config.tokens.refreshLifetime)
  const wrong = new WrongPasswords(clock)
  const told = { guessing: false, crowded: false }
  let readAt = Number.NEGATIVE_INFINITY
  let revocations = 0

  /** Whether the name of a grant has no `allow`. */
  function isUnlimited(grant = ''): boolean {
    const { scopes } = settings.gate
    const scope = scopes?.get(nameOfGrant(grant))
    return scopes === undefined || (scope !== undefined && scope.allows === undefined)
  }

  function tell(what: keyof typeof told, listener: (guesses: GuessSummary) => void): void {
    if (wrong.sum <= GUESSING) {
      told.guessing = false
      told.crowded = false
    } else if (!told[what]) {
      told[what] = true
      listener(wrong.all())
    }
  }

  function judge(client: string, result: LogInResult): void {
    if (result === 'wrong' || result === 'other-name') {
      known.wrongPassword(client)
      wrong.add(client)
      tell('guessing', onGuessing)
    } else if (result === 'overloaded') tell('crowded', onCrowded)
    else if (hasGrant(result) && isUnlimited(result.grant)) known.loggedIn(client, result.grant)
  }

  async function readGrants(recentGrants: Tokens['recentGrants']): Promise<void> {
    if (clock.monotonic() - readAt < READ_EVERY) return
    readAt = clock.monotonic()
    const before = revocations
    const live = await recentGrants(MOST_KNOWN)
    if (live === 'unavailable') return
    // From the oldest to the latest, because `known` keeps the latest last.
    for (let end = live.grants.length; end > 0; end -= READ_PER_TURN) {
      if (revocations !== before) {
        // The list may hold a grant that an operator has revoked since it was read.
        readAt = Number.NEGATIVE_INFINITY
        return
      }
      const some = live.grants.slice(Math.max(0, end - READ_PER_TURN), end)
      known.restore(some.filter(({ id }) => isUnlimited(id)))
      await nextTurn()
    }
  }

  return {
    /** Whether the client has logged in before, and has not guessed since. */
    isKnown: (client: string): boolean => known.has(client, isUnlimited),
    /** 1 for an address without wrong passwords, and less with each of them. */
    weightOf: (address: string): number => 1 / (1 + wrong.of(address)) ** 2,
    isUnlimited,
    /** `logIn`, which then also remembers its results. Reads the live grants now, and again with later logins. */
    recorded(logIn: LogIn, { recentGrants }: Pick<Tokens, 'recentGrants'>): LogIn {
      readGrants(recentGrants).catch(onBug)
      return async (password, request, grantType, username) => {
        // The login does not wait for a shared store, so a client that only the store knows has no precedence in this login.
        readGrants(recentGrants).catch(onBug)
        const result = await logIn(password, request, grantType, username)
        if (result !== 'overloaded' || !request.answered) judge(request.client.key, result)
        return result
      }
    },
    refreshed({ client }: Pick<Exchange, 'client'>, grant: string): void {
      if (isUnlimited(grant)) known.refreshed(client.key, grant)
    },
    /** An operator has revoked these grants. */
    revoked(which: Revocation): void {
      revocations += 1
      known.revoked(which)
    },
    guesses: (): GuessSummary => wrong.all(),
  }
}

function hasGrant(result: LogInResult): result is LogInResult & { readonly grant: string } {
  return typeof result === 'object' && 'grant' in result
}
