import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Exchange } from '../http/exchange.ts'
import { nameOfGrant, type Scopes } from '../http/scope.ts'
import type { Clock } from '../system/clock.ts'
import type { LogIn, LogInResult, Revocation, Tokens } from '../tokens/state.ts'
import { KnownClients, MOST_KNOWN } from './known-clients.ts'
import { GUESSING, type Guesses, WrongPasswords } from './wrong-passwords.ts'

/** How often the live grants are read (ms): those that another sidecar of a fleet issued. */
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
  /** Passwords are being guessed. Called once until it has been quiet for some minutes. */
  readonly onGuessing: (guesses: Guesses) => void
  /** Meanwhile, logins were refused because too many wait. Called once, too. */
  readonly onCrowded: (guesses: Guesses) => void
  readonly onBug: (error: unknown) => void
}

export type LoginHistory = ReturnType<typeof createLoginHistory>

/**
 * What is remembered of logins, and which clients come first for it while passwords wait (`Precedence` in `password/weighted-turns.ts`).
 * A login makes its client known only with a name without `allow`: a password that may do little must not help to guess another one.
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

  function tell(what: keyof typeof told, listener: (guesses: Guesses) => void): void {
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
    // The latest last, as `known` keeps them.
    for (let end = live.grants.length; end > 0; end -= READ_PER_TURN) {
      if (revocations !== before) {
        // What was read may hold a grant that an operator has revoked since.
        readAt = Number.NEGATIVE_INFINITY
        return
      }
      const some = live.grants.slice(Math.max(0, end - READ_PER_TURN), end)
      known.restore(some.filter(({ id }) => isUnlimited(id)))
      await nextTurn()
    }
  }

  return {
    /** The client has logged in before, and has not guessed since. */
    isKnown: (client: string): boolean => known.has(client),
    /** One for an address without wrong passwords. */
    weightOf: (address: string): number => 1 / (1 + wrong.of(address)) ** 2,
    isUnlimited,
    /** Remembers the grants that are live now, and the results of `logIn`. */
    recorded(logIn: LogIn, { recentGrants }: Pick<Tokens, 'recentGrants'>): LogIn {
      const read = (): void => void readGrants(recentGrants).catch(onBug)
      read()
      return async (password, request, grantType, username) => {
        // Does not wait for a shared store: a client that it knows of loses its precedence for this once.
        read()
        const result = await logIn(password, request, grantType, username)
        if (result !== 'overloaded' || !request.ended) judge(request.client.key, result)
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
    guesses: (): Guesses => wrong.all(),
  }
}

function hasGrant(result: LogInResult): result is LogInResult & { readonly grant: string } {
  return typeof result === 'object' && 'grant' in result && result.grant !== undefined
}
