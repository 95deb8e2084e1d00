import { LRUCache } from 'lru-cache'
import { createExpiryQueue } from './expiry-queue.ts'
import { endOfGrant, type Lifetimes, type Spent, shareOf, surplusOf, type TokenKind } from './grant-rules.ts'
import type { Digest } from './mint.ts'

/** A grant as `postern status` shows it. Times are on the wall clock (ms). */
export interface GrantSummary {
  readonly id: string
  readonly client: string
  readonly issuedAt: number
  /** When the last of its tokens expires. */
  readonly expiresAt: number
  /** The last request or refresh that this sidecar saw; null if it saw none since its start. */
  readonly usedAt: number | null
  readonly accessTokens: number
  /** 1, or 0 once the refresh token has expired. An issued grant has none. */
  readonly refreshTokens: number
  /** Only for an issued grant (`Handout`); empty if the operator gave no label. */
  readonly label?: string
}

/** The fields of a grant that a search compares. */
export type GrantOwner = Pick<GrantSummary, 'id' | 'client' | 'label'>

/** The grants that were used last. */
export interface RecentGrants {
  /** All live grants. */
  readonly total: number
  /** The issued grants, then the others, the most recently used first. A login is a use. */
  readonly grants: readonly GrantSummary[]
}

/** All times are on the monotonic clock in whole ms: V8 stores a fraction in an extra heap object. */
export interface Token {
  readonly digest: Digest
  readonly kind: TokenKind
  readonly grant: Grant
  issuedAt: number
  /** Valid while `now < expiresAt` (C7). Only `GrantTable.retime` and `GrantTable.limit` change it. */
  expiresAt: number
  /** Set for a rotated refresh token, which is kept to detect reuse. Its times are on the monotonic clock, too. */
  spent: Spent | undefined
  removed: boolean
}

export interface Grant {
  readonly id: string
  readonly client: string
  /** The operator's name for an issued grant (`Handout`); undefined for a login. */
  readonly label?: string
  issuedAt: number
  /** In order of issue. Each change makes a new array of exact size, which takes the least memory for two tokens. */
  tokens: readonly Token[]
  /** The refresh token that is not spent. */
  refresh: Token | undefined
  /** The time of the last use, on the clock of `Token`; `UNUSED` if this process saw none. */
  usedAt: number
  /** Revoked, though its tokens are not removed yet. Only the room that its tokens take still counts. */
  revoked: boolean
}

/** A number, so that V8 keeps `usedAt` without an extra heap object. */
const UNUSED = -1

/** Why a token was removed. Evicted tokens leave no trace: they count as unknown. */
type RemovalReason = 'expired' | 'revoked' | 'evicted'

export type GrantTable = ReturnType<typeof createGrantTable>

/**
 * A grant as `postern status` shows it.
 *
 * @param ahead how far the wall clock is ahead of the monotonic one (ms)
 */
export function summarize(grant: Grant, ahead: number): GrantSummary {
  const { tokens, label } = grant
  const expiresAt = tokens.reduce((last, token) => Math.max(last, token.expiresAt), 0)
  return {
    id: grant.id,
    client: grant.client,
    issuedAt: Math.round(ahead + grant.issuedAt),
    expiresAt: Math.round(ahead + expiresAt),
    usedAt: lastUse(grant, ahead),
    accessTokens: tokens.filter((token) => token.kind === 'access').length,
    refreshTokens: grant.refresh === undefined ? 0 : 1,
    ...(label === undefined ? {} : { label }),
  }
}

/** When this process last saw a use of the grant (wall clock, ms); null if it saw none. `ahead`: as for `summarize`. */
export function lastUse({ usedAt }: Grant, ahead: number): number | null {
  return usedAt === UNUSED ? null : Math.round(ahead + usedAt)
}

/**
 * Grants in order of use and their tokens by digest, at most `capacity` tokens in all. If the table is full, the least recently
 * used grant is evicted with all its tokens. A grant above its share (`shareOf`) loses its own tokens first (`surplusOf`). By default the
 * share is 2500 tokens, and a client that sends 30 token requests a minute has at most 1801 live ones.
 *
 * Issued grants do not count towards the capacity and are never evicted: `TokenPolicy.issued` bounds them.
 */
export function createGrantTable(initialCapacity: number) {
  let capacity = 0
  let share = 0
  /**
   * The logins in order of use, by id. The cache never evicts by itself, because `capacity` counts tokens, not grants, and changes with a
   * reload. (With `max` in place of `maxSize`, the cache would allocate memory for all its entries at the start.)
   */
  const recency = new LRUCache<string, Grant>({ maxSize: Number.MAX_SAFE_INTEGER, sizeCalculation: () => 1 })
  /** The issued grants, by id. Each has one token, which does not count towards the capacity. */
  const issued = new Map<string, Grant>()
  /** Why access tokens were removed, for the latest `capacity` of them. A plain map, because the bound of an `LRUCache` is fixed. */
  const removals = new Map<Digest, 'expired' | 'revoked'>()
  const index = new Map<Digest, Token>()
  const queue = createExpiryQueue<Token>()
  const live = { access: 0, refresh: 0 }
  /** The grants that are revoked and not removed yet. They make room first. */
  const revoked = new Set<Grant>()

  function resize(wanted: number): void {
    capacity = Math.max(2, wanted)
    share = shareOf(capacity)
    forgetRemovals()
  }
  resize(initialCapacity)

  function forgetRemovals(): void {
    for (const digest of removals.keys()) {
      if (removals.size <= capacity) return
      removals.delete(digest)
    }
  }

  /** @param label of an issued grant; undefined for a login */
  function open(id: string, client: string, issuedAt: number, label?: string): Grant {
    const grant: Grant = {
      id,
      client,
      issuedAt,
      tokens: [],
      refresh: undefined,
      usedAt: UNUSED,
      revoked: false,
    }
    if (label === undefined) {
      recency.set(id, grant)
      return grant
    }
    const labelled = { ...grant, label }
    issued.set(id, labelled)
    return labelled
  }

  function* grants(): Generator<Grant, void> {
    for (const grant of recency.rvalues()) if (grant?.revoked === false) yield grant
    yield* liveIssued()
  }

  function liveIssued(): readonly Grant[] {
    return [...issued.values()].filter((grant) => !grant.revoked)
  }

  /** @param spent of a restored token that was spent before the restart */
  function add(
    grant: Grant,
    kind: TokenKind,
    digest: Digest,
    issuedAt: number,
    expiresAt: number,
    spent?: Spent,
  ): Token {
    const token: Token = { digest, kind, grant, issuedAt, expiresAt, spent, removed: false }
    grant.tokens = grant.tokens.concat(token)
    if (kind === 'refresh' && spent === undefined) grant.refresh = token
    if (grant.label === undefined && spent === undefined) live[kind]++
    index.set(digest, token)
    queue.push(token)
    return token
  }

  function spend(token: Token, spent: Spent): void {
    if (token.spent === undefined) live.refresh--
    token.spent = spent
    if (token.grant.refresh === token) token.grant.refresh = undefined
  }

  /**
   * Moves the times of restored tokens and of their grants by `by` (whole ms), after the clock by which they were restored was corrected.
   * It never prolongs a grace, and leaves one that began after the restart: its time is right.
   *
   * @param latest the latest time at which a token may end
   * @param restoredAt the time of the restart
   */
  function retime(
    tokens: readonly Token[],
    by: number,
    latest: (token: Token) => number,
    restoredAt: number,
  ): void {
    for (const grant of new Set(tokens.map((token) => token.grant)))
      grant.issuedAt = Math.min(grant.issuedAt + by, restoredAt)
    for (const token of tokens) {
      token.issuedAt += by
      token.expiresAt = Math.min(token.expiresAt + by, latest(token))
      if (token.spent !== undefined && token.spent.at < restoredAt && by < 0)
        token.spent = { at: token.spent.at + by, graceEnd: token.spent.graceEnd + by }
    }
    queue.reorder()
  }

  /** Shortens the tokens that would outlive their login (`endOfGrant`), and returns them. Leaves out revoked ones. */
  function limit(lifetimes: Pick<Lifetimes, 'grantLifetime'>): readonly Token[] {
    if (typeof lifetimes.grantLifetime !== 'number') return []
    const limited: Token[] = []
    for (const token of index.values()) {
      const end = endOfGrant(token.grant.issuedAt, lifetimes)
      if (token.expiresAt <= end || token.grant.label !== undefined || token.grant.revoked) continue
      token.expiresAt = end
      limited.push(token)
    }
    if (limited.length > 0) queue.reorder()
    return limited
  }

  function remove(token: Token, reason: RemovalReason): void {
    token.removed = true
    index.delete(token.digest)
    token.grant.tokens = token.grant.tokens.filter((other) => other !== token)
    if (token.grant.refresh === token) token.grant.refresh = undefined
    if (token.spent === undefined && token.grant.label === undefined) live[token.kind]--
    if (reason !== 'evicted' && token.kind === 'access') {
      removals.set(token.digest, reason)
      forgetRemovals()
    }
    if (token.grant.tokens.length > 0) return
    revoked.delete(token.grant)
    recency.delete(token.grant.id)
    issued.delete(token.grant.id)
  }

  function drop(token: Token, reason: RemovalReason): void {
    remove(token, reason)
    queue.discard()
  }

  /** Removes the expired tokens and returns them. */
  function expire(now: number): Token[] {
    const expired: Token[] = []
    for (let token = queue.take(now); token !== undefined; token = queue.take(now)) {
      remove(token, 'expired')
      expired.push(token)
    }
    return expired
  }

  /** Removes the tokens that exceed the capacity and returns them. `grown`: the grant that just got tokens. */
  function evict(grown?: Grant): Token[] {
    const evicted: Token[] = []
    const leave = (token: Token): void => {
      drop(token, token.grant.revoked ? 'revoked' : 'evicted')
      evicted.push(token)
    }
    if (grown !== undefined && grown.tokens.length > share)
      for (const token of surplusOf(grown.tokens, grown.tokens.length - share, grown.refresh)) leave(token)
    while (index.size - issued.size > capacity) {
      const [grant = recency.pop()] = revoked
      if (grant === undefined) break
      for (const token of grant.tokens) leave(token)
    }
    return evicted
  }

  function find(digest: Digest): Token | undefined {
    const token = index.get(digest)
    return token === undefined || token.grant.revoked ? undefined : token
  }

  return {
    find,
    /** Finds a grant by its id. This is not a use of the grant. */
    grant(id: string): Grant | undefined {
      const grant = recency.peek(id) ?? issued.get(id)
      return grant === undefined || grant.revoked ? undefined : grant
    },
    /** Revokes grants at once. Each of their tokens takes room until it is dropped. */
    revoke(grants: readonly Grant[]): void {
      for (const grant of grants) {
        grant.revoked = true
        revoked.add(grant)
      }
    },
    /** Whether the two tokens of one more login would evict a grant. */
    get isFull(): boolean {
      return index.size - issued.size + 2 > capacity
    },
    get grantCount(): number {
      return recency.size + issued.size - revoked.size
    },
    /** All grants: logins in order of use, the least recently used first, then the issued grants. */
    grants,
    issued: liveIssued,
    /** At most `most` grants: the issued ones, then the most recently used logins. */
    recent(most: number): readonly Grant[] {
      const logins = recency.values().filter((grant) => grant?.revoked === false)
      return [...liveIssued(), ...logins.take(most)].slice(0, most)
    },
    open,
    /** Makes a grant the most recently used. `now`: on the monotonic clock (ms), whole or not. */
    touch(grant: Grant, now: number): void {
      recency.get(grant.id)
      grant.usedAt = Math.floor(now)
    },
    add,
    spend,
    retime,
    limit,
    drop,
    expire,
    evict,
    /** Why an access token that `find` does not return was removed; undefined if the table has forgotten it or never had it. */
    removalReason(digest: Digest): 'expired' | 'revoked' | undefined {
      const token = index.get(digest)
      const isRevoked = token?.grant.revoked === true && token.kind === 'access'
      return isRevoked ? 'revoked' : removals.get(digest)
    },
    /** The number of live tokens of logins. Spent refresh tokens are not counted, though they take room. */
    counts: (): { readonly access: number; readonly refresh: number } => ({ ...live }),
    resize,
  }
}
