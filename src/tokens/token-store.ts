import { randomBytes } from 'node:crypto'
import { type Clock, createWallOffset } from '../system/clock.ts'
import {
  type Grant,
  type GrantTable,
  spentMeans,
  summarize,
  type Token,
  type TokenKind,
} from './grant-table.ts'
import type { TokenJournal } from './journal.ts'
import { digestToken, looksMinted, mintGrantId, mintToken } from './mint.ts'
import {
  type GrantOwner,
  type GrantSummary,
  grantsInFlight,
  type IssuedTokens,
  isTheirs,
  type LiveRequests,
  type LocalLookup,
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

interface Dependencies {
  readonly policy: TokenPolicy
  readonly clock: Clock
  /** Undefined for `tokens.store: memory`: a restart forgets every token. */
  readonly journal: TokenJournal | undefined
  /** Of the same capacity as the policy, with the tokens that the journal has restored. */
  readonly table: GrantTable
  readonly listener: TokenEvents
  readonly live: LiveRequests
}

/**
 * Holds the tokens in memory, which is authoritative; the journal follows.
 * `identify` runs on every request and takes 0.9 µs, more than half of it for the hash.
 */
export function createTokenStore(deps: Dependencies) {
  const { policy, clock, journal, table, listener, live } = deps
  let { accessLifetime, refreshLifetime, rotateRefresh, refreshGrace } = policy
  const wallOffset = createWallOffset(clock)
  /**
   * Token responses that a retry within the grace gets again. No other structure holds tokens in plain text, and these are removed
   * after the grace.
   */
  const replays = new Map<Token, IssuedTokens>()

  /** Removes expired tokens and replays. Returns the time in whole ms. */
  function dropExpired(): number {
    journal?.followClock()
    const now = Math.floor(clock.monotonic())
    for (const token of replays.keys()) {
      if (token.spent !== undefined && spentMeans(token.spent, now, refreshGrace) === 'retry') break
      replays.delete(token)
    }
    const expired = table.expire(now)
    if (expired.length > 0) journal?.forget(expired)
    return now
  }

  function add(grant: Grant, kind: TokenKind, plain: string, now: number): Token {
    const lifetime = kind === 'access' ? accessLifetime : refreshLifetime
    return table.add(grant, kind, digestToken(plain), now, now + lifetime)
  }

  /** A request in flight is a use: the grant of a stream that is quiet for hours is not evicted first. */
  function touchInFlight(now: number): void {
    for (const id of grantsInFlight(live)) {
      const grant = table.grant(id)
      if (grant !== undefined) table.touch(grant, now)
    }
  }

  function makeRoom(grown?: Grant): void {
    const evicted = table.evict(grown)
    if (evicted.length === 0) return
    journal?.forget(evicted)
    for (const kind of ['access', 'refresh'] as const) {
      const count = evicted.filter((token) => token.kind === kind && token.spent === undefined).length
      if (count > 0) listener.evicted(kind, count)
    }
  }

  /** Writes the tokens to disk before the response is sent: a crash cannot invalidate tokens that a client has. */
  function persist(grant: Grant, tokens: readonly Token[]): void {
    makeRoom(grant)
    journal?.record(tokens.filter((token) => !token.removed))
  }

  /**
   * Issues the tokens of a new grant. `grantType`: the name of the grant type, the `grant` label of the metric. `name`: that of the
   * password; empty for `password`.
   */
  function issue(client: string, grantType: string, name = ''): IssuedTokens {
    const now = dropExpired()
    if (table.isFull) touchInFlight(now)
    const grant = table.open(mintGrantId(randomBytes, name), client, now)
    const [accessToken, refreshToken] = [mintToken(), mintToken()]
    persist(grant, [add(grant, 'access', accessToken, now), add(grant, 'refresh', refreshToken, now)])
    listener.issued(grantType)
    return { grant: grant.id, accessToken, refreshToken, expiresIn: Math.floor(accessLifetime / 1000) }
  }

  function refresh(presented: string): IssuedTokens | undefined {
    if (!looksMinted(presented)) return undefined
    const now = dropExpired()
    const token = table.find(digestToken(presented))
    if (token?.kind !== 'refresh') return undefined
    if (token.spent !== undefined && spentMeans(token.spent, now, refreshGrace) === 'reuse') {
      // Two parties hold the token and one of them stole it. The sidecar cannot tell which (RFC 9700 §4.14.2).
      revokeGrants([token.grant.id], 'refresh_token_reuse')
      return undefined
    }
    if (table.isFull) touchInFlight(now)
    table.touch(token.grant, now)
    return replays.get(token) ?? exchange(token, presented, now)
  }

  /**
   * A spent token has no stored response only after a restart: the earlier process ended, perhaps before its client got the
   * response. A refusal would lock out that client, so it gets a new pair. The live refresh token, which the client may not have
   * received, becomes spent. So one live refresh token remains, and reuse is still detected.
   */
  function exchange(token: Token, presented: string, now: number): IssuedTokens {
    const { grant } = token
    const accessToken = mintToken()
    const rotated = rotateRefresh || token.spent !== undefined
    const refreshToken = rotated ? mintToken() : presented
    const expiresIn = Math.floor(accessLifetime / 1000)
    const issued = { grant: grant.id, accessToken, refreshToken, expiresIn }
    const changed: Token[] = []
    if (rotated) {
      if (grant.refresh !== undefined) {
        changed.push(grant.refresh)
        replays.set(grant.refresh, issued)
        table.spend(grant.refresh, { at: now, graceEnd: now + refreshGrace })
      }
      replays.set(token, issued)
      changed.push(add(grant, 'refresh', refreshToken, now))
    }
    persist(grant, [...changed, add(grant, 'access', accessToken, now)])
    listener.issued('refresh_token')
    return issued
  }

  function identify(accessToken: string): LocalLookup {
    if (!looksMinted(accessToken)) return REFUSED.unknown
    const digest = digestToken(accessToken)
    const token = table.find(digest)
    if (token === undefined) {
      return REFUSED[table.removalReason(digest) ?? 'unknown']
    }
    if (token.kind !== 'access') return REFUSED.unknown
    const now = clock.monotonic()
    if (now >= token.expiresAt) return REFUSED.expired
    table.touch(token.grant, now)
    return { kind: 'valid', grant: token.grant.id }
  }

  /** The grants that a revocation means, also those that are over but have a request in flight. */
  function select(which: Revocation): readonly string[] {
    const stored = storedOf(which).map(({ id }) => id)
    return [...stored, ...unfinishedOf(which, live, (id) => table.grant(id) !== undefined)]
  }

  function storedOf(which: Revocation): readonly Grant[] {
    if ('all' in which) return [...table.grants()]
    if ('client' in which || 'name' in which)
      return [...table.grants()].filter((grant) => isTheirs(which, grant))
    if ('grants' in which) return which.grants.map(table.grant).filter((grant) => grant !== undefined)
    const grant = 'grant' in which ? table.grant(which.grant) : table.find(digestToken(which.token))?.grant
    return grant === undefined ? [] : [grant]
  }

  function revokeGrants(grants: readonly string[], reason: string, all = false): number {
    const tokens = grants.flatMap((id) => table.grant(id)?.tokens ?? [])
    for (const token of tokens) {
      table.drop(token, 'revoked')
      replays.delete(token)
    }
    // `all` also deletes stored tokens that this process never loaded.
    if (all) journal?.revoke('all')
    else if (tokens.length > 0) journal?.revoke(tokens)
    if (grants.length > 0) {
      listener.revoked(grants.length, reason, grants)
      live.cut(grants)
    }
    return grants.length
  }

  function revoke(which: Revocation, reason: string): number {
    dropExpired()
    return revokeGrants(select(which), reason, 'all' in which)
  }

  /** A grant is over when it has no usable token: a spent refresh token is none. */
  function isOver(id: string): boolean {
    return table.grant(id)?.tokens.some(({ spent }) => spent === undefined) !== true
  }

  function applyPolicy(next: TokenPolicy): void {
    const now = dropExpired()
    ;({ accessLifetime, refreshLifetime, rotateRefresh, refreshGrace } = next)
    table.resize(next.capacity)
    if (table.isFull) touchInFlight(now)
    makeRoom()
  }

  return {
    issue,
    refresh,
    identify,
    revoke,
    grants(): readonly GrantSummary[] {
      dropExpired()
      const ahead = wallOffset()
      return [...table.grants()].map((grant) => summarize(grant, ahead))
    },
    recentGrants(most: number): RecentGrants {
      dropExpired()
      const ahead = wallOffset()
      return { total: table.grantCount, grants: table.recent(most).map((grant) => summarize(grant, ahead)) }
    },
    owners(): readonly GrantOwner[] {
      dropExpired()
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
      dropExpired()
      return table.counts()
    },
    sweep(): void {
      const now = dropExpired()
      touchInFlight(now)
      live.endStreams(now, isOver)
      journal?.maintain()
    },
    applyPolicy,
  } satisfies Tokens & Record<string, unknown>
}
