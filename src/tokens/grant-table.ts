import { LRUCache } from 'lru-cache'
import { createExpiryQueue } from './expiry-queue.ts'
import type { Digest } from './mint.ts'

export type TokenKind = 'access' | 'refresh'

/** All times in here are on the monotonic clock, in whole ms: a fraction would cost an object of its own. */
export interface Token {
  readonly digest: Digest
  readonly kind: TokenKind
  readonly grant: Grant
  readonly issuedAt: number
  /** Valid while `now < expiresAt` (C7). */
  readonly expiresAt: number
  /** When a rotated refresh token was exchanged for its successor. It is kept on so that reuse is noticed. */
  spentAt: number | undefined
  gone: boolean
}

export interface Grant {
  readonly id: string
  readonly client: string
  readonly issuedAt: number
  /** In order of issue. Made anew with each change: an array that fits is the smallest thing that holds two. */
  tokens: readonly Token[]
  /** The refresh token that is not spent. */
  refresh: Token | undefined
}

/** Why a token is no longer there; evicted ones leave no trace and count as unknown. */
type Departure = 'expired' | 'revoked' | 'evicted'

export interface GrantTable {
  readonly size: number
  find(digest: Digest): Token | undefined
  grant(id: string): Grant | undefined
  /** Least recently used first. */
  grants(): Generator<Grant, void>
  open(id: string, client: string, issuedAt: number): Grant
  /** Makes a grant the most recently used. */
  touch(grant: Grant): void
  add(grant: Grant, kind: TokenKind, digest: Digest, issuedAt: number, expiresAt: number): Token
  spend(token: Token, at: number): void
  drop(token: Token, departure: Departure): void
  /** Drops and returns what has expired. */
  expire(now: number): Token[]
  /** Drops and returns what there is no room for. `grown` is the grant that was just added to. */
  evict(grown?: Grant): Token[]
  /** What became of an access token that `find` does not know. */
  departed(digest: Digest): 'expired' | 'revoked' | undefined
  /** Live tokens; spent refresh tokens are not among them, though they take room. */
  counts(): { readonly access: number; readonly refresh: number }
  resize(capacity: number): void
}

/**
 * Grants in order of use, their tokens by digest, at most `capacity` tokens in all. When room runs out, the
 * least recently used grant leaves with all its tokens. No single grant holds more than a quarter of the room:
 * past that its own oldest token but the live refresh token goes, so a client that refreshes without end takes
 * its toll of itself first. (By default that is 2500 tokens; the limit of 30 requests a minute leaves 1801 alive.)
 */
export function createGrantTable(initialCapacity: number): GrantTable {
  let capacity = 0
  let share = 0
  let recency: LRUCache<string, Grant>
  let departures: LRUCache<Digest, 'expired' | 'revoked'>
  const index = new Map<Digest, Token>()
  const queue = createExpiryQueue<Token>()
  const live = { access: 0, refresh: 0 }

  function resize(wanted: number): void {
    capacity = Math.max(2, wanted)
    share = Math.min(capacity, Math.max(8, Math.floor(capacity / 4)))
    const held = recency === undefined ? [] : [...grants()]
    // One more than fits: a grant is opened before the room for it is made.
    recency = new LRUCache({ max: Math.max(capacity, held.length) + 1 })
    for (const grant of held) recency.set(grant.id, grant)
    departures = new LRUCache({ max: capacity })
  }
  resize(initialCapacity)

  function* grants(): Generator<Grant, void> {
    for (const grant of recency.rvalues()) if (grant !== undefined) yield grant
  }

  function open(id: string, client: string, issuedAt: number): Grant {
    const grant: Grant = {
      id,
      client,
      issuedAt,
      tokens: [],
      refresh: undefined,
    }
    recency.set(id, grant)
    return grant
  }

  function add(grant: Grant, kind: TokenKind, digest: Digest, issuedAt: number, expiresAt: number): Token {
    const token: Token = { digest, kind, grant, issuedAt, expiresAt, spentAt: undefined, gone: false }
    grant.tokens = grant.tokens.concat(token)
    if (kind === 'refresh') grant.refresh = token
    live[kind]++
    index.set(digest, token)
    queue.push(token)
    return token
  }

  function spend(token: Token, at: number): void {
    if (token.spentAt === undefined) live.refresh--
    token.spentAt = at
    if (token.grant.refresh === token) token.grant.refresh = undefined
  }

  function remove(token: Token, departure: Departure): void {
    token.gone = true
    index.delete(token.digest)
    token.grant.tokens = token.grant.tokens.filter((other) => other !== token)
    if (token.grant.refresh === token) token.grant.refresh = undefined
    if (token.spentAt === undefined) live[token.kind]--
    if (departure !== 'evicted' && token.kind === 'access') departures.set(token.digest, departure)
    if (token.grant.tokens.length === 0) recency.delete(token.grant.id)
  }

  function drop(token: Token, departure: Departure): void {
    remove(token, departure)
    queue.discard()
  }

  function expire(now: number): Token[] {
    const expired: Token[] = []
    for (let token = queue.take(now); token !== undefined; token = queue.take(now)) {
      remove(token, 'expired')
      expired.push(token)
    }
    return expired
  }

  function oldest(grant: Grant): Token | undefined {
    for (const token of grant.tokens) if (token !== grant.refresh) return token
    return undefined
  }

  function evict(grown?: Grant): Token[] {
    const evicted: Token[] = []
    const leave = (token: Token): void => {
      drop(token, 'evicted')
      evicted.push(token)
    }
    while (grown !== undefined && grown.tokens.length > share) {
      const token = oldest(grown)
      if (token === undefined) break
      leave(token)
    }
    while (index.size > capacity) for (const token of recency.pop()?.tokens ?? []) leave(token)
    return evicted
  }

  return {
    get size() {
      return index.size
    },
    find: (digest) => index.get(digest),
    grant: (id) => recency.peek(id),
    grants,
    open,
    touch: (grant) => {
      recency.get(grant.id)
    },
    add,
    spend,
    drop,
    expire,
    evict,
    departed: (digest) => departures.get(digest),
    counts: () => ({ ...live }),
    resize,
  }
}
