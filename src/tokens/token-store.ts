import { randomBytes } from 'node:crypto'
import { type Clock, createWallOffset, nextTurn } from '../system/clock.ts'
import {
  endOfGrant,
  endsTooSoon,
  type Lifetimes,
  lifetimesWithin,
  refreshMeans,
  spentMeans,
} from './grant-rules.ts'
import { type Grant, type GrantTable, summarize, type Token } from './grant-table.ts'
import { longestUnused, OPERATOR } from './handout.ts'
import type { TokenJournal } from './journal.ts'
import {
  digestToken,
  looksMinted,
  mintExchange,
  mintGrantId,
  mintPair,
  mintToken,
  type NewToken,
} from './mint.ts'
import {
  type AllIssued,
  type GrantOwner,
  type GrantSummary,
  grantsInFlight,
  type HandedOut,
  type Handout,
  type IssuedTokens,
  isTheirs,
  type LiveRequests,
  type LocalLookup,
  MOST_ISSUED,
  REFUSED,
  type RecentGrants,
  type Revocation,
  type TokenEvents,
  type TokenPolicy,
  type Tokens,
  unfinishedOf,
} from './state.ts'

export type * from './state.ts'

export type TokenStore = ReturnType<typeof createTokenStore>

/** The `reason` label of `postern_tokens_revoked_total` for tokens whose password has changed. */
export const PASSWORD_CHANGED = 'password_changed'

/** The most revoked grants that one turn of the event loop removes: 100,000 at once would block the loop for most of a second. */
const REMOVED_PER_TURN = 500

interface RecordsDependencies {
  readonly clock: Clock
  /** Undefined for `tokens.store: memory`: a restart forgets every token. */
  readonly journal: TokenJournal | undefined
  /** Contains the tokens that the journal has restored. */
  readonly table: GrantTable
  readonly listener: TokenEvents
  readonly live: LiveRequests
}

interface Dependencies extends RecordsDependencies {
  /** Must have the capacity with which the table was created. */
  readonly policy: TokenPolicy
}

/**
 * The tokens of this process. `identify` runs on every request and takes 0.9 µs, more than half of it for the hash.
 */
export function createTokenStore(deps: Dependencies) {
  const { clock, table, listener, live } = deps
  let { policy } = deps
  const wallOffset = createWallOffset(clock)
  const records = createRecords(deps)

  /** The lifetimes of tokens that a grant gets now: none ends after the grant. */
  function lifetimesOf(granted: number, now: number): Lifetimes {
    if (typeof policy.grantLifetime !== 'number') return policy
    return lifetimesWithin(policy, endOfGrant(granted, policy) - now)
  }

  /**
   * Issues the tokens of a new grant. `grantType`: the `grant` label of the metric. `name`: the name of the password; empty for
   * `password`.
   */
  function issue(client: string, grantType: string, name = ''): IssuedTokens {
    const now = records.expire(policy)
    if (table.isFull) records.touchInFlight(now)
    const grant = table.open(mintGrantId(randomBytes, name), client, now)
    const lifetimes = lifetimesOf(now, now)
    const { response, added } = mintPair(lifetimes, randomBytes)
    records.add(grant, added, now)
    listener.issued(grantType)
    return { grant: grant.id, ...response }
  }

  /** Issues a token that the operator hands out, unless the bound of issued grants is reached. `reportHandOut` counts it. */
  function handOut({ name, label, lifetime }: Handout): HandedOut | AllIssued {
    const now = records.expire(policy)
    if (table.issued.size >= (policy.issued ?? MOST_ISSUED))
      return { longestUnused: longestUnused(issuedGrants()) }
    const grant = table.open(mintGrantId(randomBytes, name), OPERATOR, now, label)
    const accessToken = mintToken()
    records.add(grant, [{ kind: 'access', digest: digestToken(accessToken), lifetime }], now)
    return { accessToken, grant: grant.id, expiresAt: Math.round(wallOffset() + now + lifetime) }
  }

  function issuedGrants(): readonly GrantSummary[] {
    const ahead = wallOffset()
    return Array.from(table.issued.values(), (grant) => summarize(grant, ahead))
  }

  function refresh(presented: string): IssuedTokens | undefined {
    if (!looksMinted(presented)) return undefined
    const now = records.expire(policy)
    const token = table.find(digestToken(presented))
    const meaning = refreshMeans(token, now, policy.refreshGrace)
    if (token === undefined || meaning === 'unknown') return undefined
    if (meaning === 'reuse') {
      revoke({ grant: token.grant.id }, 'refresh_token_reuse')
      return undefined
    }
    if (table.isFull) records.touchInFlight(now)
    table.touch(token.grant, now)
    return records.responseTo(token) ?? exchange(token, presented, now)
  }

  /**
   * Exchanges a refresh token for new tokens. Undefined in the last second of a login.
   *
   * A spent token gets here only after a restart, which loses the stored responses. The earlier process may have ended before the client
   * got the response. A refusal would lock out that client, so it gets a new pair. The live refresh token, which the client may not have,
   * becomes spent: one live refresh token remains, and reuse is still detected.
   */
  function exchange(token: Token, presented: string, now: number): IssuedTokens | undefined {
    const { grant } = token
    const rotates = policy.rotateRefresh || token.spent !== undefined
    const lifetimes = lifetimesOf(grant.issuedAt, now)
    if (endsTooSoon(lifetimes)) return undefined
    const { response, added } = mintExchange(presented, rotates, lifetimes, randomBytes)
    const issued = { grant: grant.id, ...response }
    const spent = rotates ? grant.refresh : undefined
    if (spent !== undefined) {
      table.spend(spent, { at: now, graceEnd: now + policy.refreshGrace })
      records.keepResponse(spent, issued)
    }
    if (rotates) records.keepResponse(token, issued)
    records.add(grant, added, now, spent)
    listener.issued('refresh_token')
    return issued
  }

  function identify(accessToken: string, _client = '', now = clock.monotonic()): LocalLookup {
    if (!looksMinted(accessToken)) return REFUSED.unknown
    const digest = digestToken(accessToken)
    const token = table.find(digest)
    if (token === undefined) {
      return REFUSED[table.removalReason(digest) ?? 'unknown']
    }
    if (token.kind !== 'access') return REFUSED.unknown
    if (now >= token.expiresAt) return REFUSED.expired
    table.touch(token.grant, now)
    return { kind: 'valid', grant: token.grant.id }
  }

  function storedOf(which: Revocation): readonly Grant[] {
    if ('all' in which) return [...table.grants()]
    if ('client' in which || 'name' in which)
      return [...table.grants()].filter((grant) => isTheirs(which, grant))
    if ('grants' in which) return which.grants.map(table.grant).filter((grant) => grant !== undefined)
    const grant = 'grant' in which ? table.grant(which.grant) : table.find(digestToken(which.token))?.grant
    return grant === undefined ? [] : [grant]
  }

  function revoke(which: Revocation, reason: string): number {
    records.expire(policy)
    const stored = storedOf(which)
    // Grants that have ended and still have a request in flight.
    const unfinished = unfinishedOf(which, live, (id) => table.grant(id) !== undefined)
    records.revoke(stored, 'all' in which, reason === PASSWORD_CHANGED)
    const ids = stored.map(({ id }) => id).concat(unfinished)
    if (ids.length > 0) {
      listener.revoked(ids.length, reason, ids)
      live.cut(ids)
    }
    return ids.length
  }

  /** Whether a grant has no usable token left. A spent refresh token is not usable. */
  function isOver(id: string): boolean {
    return table.grant(id)?.tokens.some(({ spent }) => spent === undefined) !== true
  }

  function applyPolicy(next: TokenPolicy): void {
    policy = next
    records.limit(policy)
    const now = records.expire(policy)
    table.resize(next.capacity)
    if (table.isFull) records.touchInFlight(now)
    records.makeRoom()
  }

  return {
    issue,
    handOut,
    issued(): readonly GrantSummary[] {
      records.expire(policy)
      return issuedGrants()
    },
    refresh,
    identify,
    revoke,
    grants(): readonly GrantSummary[] {
      records.expire(policy)
      const ahead = wallOffset()
      return [...table.grants()].map((grant) => summarize(grant, ahead))
    },
    recentGrants(most: number): RecentGrants {
      records.expire(policy)
      const ahead = wallOffset()
      return { total: table.grantCount, grants: table.recent(most).map((grant) => summarize(grant, ahead)) }
    },
    owners(): readonly GrantOwner[] {
      records.expire(policy)
      return [...table.grants()]
    },
    describe(ids: readonly string[]): readonly GrantSummary[] {
      const ahead = wallOffset()
      return ids.flatMap((id) => {
        const grant = table.grant(id)
        return grant === undefined ? [] : summarize(grant, ahead)
      })
    },
    counts() {
      records.expire(policy)
      return table.counts()
    },
    sweep(): void {
      const now = records.expire(policy)
      records.touchInFlight(now)
      live.endStreams(now, isOver)
      deps.journal?.maintain()
    },
    applyPolicy,
    /** Resolves when every token that a changed password revoked has left the file. */
    removed: records.removed,
    /** Stops the removal of tokens. For a changed password, the former fingerprint in the file revokes the rest at the next start. */
    close: records.close,
  } satisfies Tokens & Record<string, unknown>
}

/** The tokens of this process as records. Memory is authoritative, and the journal follows it. */
function createRecords({ clock, journal, table, listener, live }: RecordsDependencies) {
  /**
   * Token responses that a retry within the grace gets again. Only this map holds tokens in plain text, and entries are removed after
   * the grace.
   */
  const responses = new Map<Token, IssuedTokens>()
  let removing: Promise<void> = Promise.resolve()
  let closed = false

  function drop(tokens: readonly Token[]): void {
    for (const token of tokens) {
      if (!token.removed) table.drop(token, 'revoked')
      responses.delete(token)
    }
  }

  /** Removes revoked tokens over several turns of the event loop. With `stored` also from the journal, durably in each turn. */
  async function dropInTurns(ofGrants: readonly (readonly Token[])[], stored: boolean): Promise<void> {
    for (let at = 0; at < ofGrants.length; at += REMOVED_PER_TURN) {
      await nextTurn()
      if (closed) return
      const tokens = ofGrants.slice(at, at + REMOVED_PER_TURN).flat()
      drop(tokens)
      if (stored) journal?.revoke(tokens)
    }
  }

  function makeRoom(grown?: Grant): void {
    const evicted = table.evict(grown)
    if (evicted.length === 0) return
    journal?.forget(evicted)
    for (const kind of ['access', 'refresh'] as const) {
      const count = evicted.filter(
        (token) => token.kind === kind && token.spent === undefined && !token.grant.revoked,
      ).length
      if (count > 0) listener.evicted(kind, count)
    }
  }

  /** Lets no token outlive its login. The journal records that, so a restart under a later policy does not prolong a token. */
  function limit(policy: TokenPolicy): void {
    const limited = table.limit(policy)
    if (limited.length > 0) journal?.record(limited)
  }

  return {
    limit,
    /**
     * Removes expired tokens, and responses whose grace is over. Returns the time in whole ms.
     *
     * @param policy by which they expire
     */
    expire(policy: TokenPolicy): number {
      const { refreshGrace: grace } = policy
      if (journal?.followClock()) limit(policy)
      const now = Math.floor(clock.monotonic())
      for (const token of responses.keys()) {
        if (token.spent !== undefined && spentMeans(token.spent, now, grace) === 'retry') break
        responses.delete(token)
      }
      const expired = table.expire(now)
      if (expired.length > 0) journal?.forget(expired)
      return now
    },
    /** A request in flight is a use: the grant of a stream that is quiet for hours is not evicted first. */
    touchInFlight(now: number): void {
      for (const id of grantsInFlight(live)) {
        const grant = table.grant(id)
        if (grant !== undefined) table.touch(grant, now)
      }
    },
    makeRoom,
    /**
     * Adds tokens to a grant, and writes them and the token that was spent for them to disk. The response is sent after that, so a crash
     * cannot invalidate tokens that a client has.
     */
    add(grant: Grant, added: readonly NewToken[], now: number, spent?: Token): void {
      const changed = spent === undefined ? [] : [spent]
      for (const { kind, digest, lifetime } of added)
        changed.push(table.add(grant, kind, digest, now, now + lifetime))
      makeRoom(grant)
      journal?.record(changed.filter((token) => !token.removed))
    },
    /** Keeps the response for a retry with this token. */
    keepResponse(token: Token, response: IssuedTokens): void {
      responses.set(token, response)
    },
    responseTo: (token: Token): IssuedTokens | undefined => responses.get(token),
    /**
     * Revokes grants: their tokens are refused at once, and deleted durably. Many grants are removed over several turns of the event loop,
     * but only where a stop in between cannot bring a token back: with `all`, the journal forgets every token in one step; after a change
     * of the password, the next start revokes the rest.
     *
     * @param all also deletes stored tokens that this process never loaded
     */
    revoke(grants: readonly Grant[], all: boolean, passwordChanged: boolean): void {
      const tokens = grants.map((grant) => grant.tokens)
      const spread = (all || passwordChanged) && grants.length > REMOVED_PER_TURN
      // The table comes before the journal: if the journal has to recreate its file, it writes the tokens that the table has.
      if (spread) table.revoke(grants)
      else drop(tokens.flat())
      if (all) journal?.revoke('all')
      else if (!spread && tokens.length > 0) journal?.revoke(tokens.flat())
      if (spread) removing = removing.then(() => dropInTurns(tokens, !all))
    },
    removed: (): Promise<void> => removing,
    close(): void {
      closed = true
    },
  }
}
