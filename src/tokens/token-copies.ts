import { type SharedStore, StoreUnavailable } from '../store/shared-store.ts'
import { createBoundedQueue } from '../system/bounded-queue.ts'
import type { Clock } from '../system/clock.ts'
import { createGrantTable } from './grant-table.ts'
import { type Digest, digestToken, looksMinted } from './mint.ts'
import type { SharedTokenPolicy, TokenLookup } from './token-contract.ts'
import { LOOK_UP } from './token-scripts.ts'

/** An access token of the shared store, as this sidecar knows it. */
export interface TokenCopy {
  readonly digest: Digest
  readonly grant: string
  readonly client: string
  readonly epoch: string
  /** When the password was given, on the server's clock (ms). */
  readonly granted: number
  /** When it expires, on the monotonic clock (ms). */
  readonly until: number
}

/**
 * The access tokens of the shared store that this sidecar has seen. While it hears of revocations, a copy is as good as the original, so
 * an admitted request costs no round trip.
 */
export interface TokenCopies {
  /** Looks up an access token: synchronously if a copy or the memory of revoked ones decides, else with one question to the server. */
  identify(accessToken: string): TokenLookup | Promise<TokenLookup>
  /** The grant of an access token of which there is a copy. */
  grantOf(digest: Digest): string | undefined
  /** Does nothing for a token of another epoch: of a later one this sidecar is about to hear. */
  add(copy: TokenCopy): void
  /** Drops the copies of revoked grants and cuts their requests. A question under way cannot bring them back. */
  revoke(grants: readonly string[]): void
  /** Drops copies that the server evicted. */
  evict(grants: readonly string[]): void
  /** Drops every copy of an earlier epoch and cuts their requests. Does nothing if the epoch is not new. */
  begin(epoch: string): void
  /** Takes over the epoch with which an emptied server began anew: the copies stay. */
  adopt(epoch: string): void
  /** Drops every copy and cuts every request: the password has changed, and the server cannot be asked for the new epoch. */
  dropAll(): void
  /** The present epoch, as far as this sidecar has heard; empty before it has heard of one. */
  readonly epoch: string
  /** This sidecar has heard of every revocation up to now. */
  heard(): void
  /** Whether it still hears of them, as far as is known. */
  readonly hears: boolean
  /** Another server may answer from now on: it may know what the one before it did not. */
  forgetUnknown(): void
  /** The server has lost its data: the copies are all that is left of their tokens, and work for the offline grace. */
  orphan(): void
  /** The grants with a copy or a request in flight. */
  grants(): readonly string[]
  /** The grants that were revoked last, at most 1000. */
  revoked(): readonly string[]
  counts(): { readonly access: number; readonly refresh: number }
  sweep(): void
  applyPolicy(policy: CopyPolicy): void
}

type CopyPolicy = Pick<SharedTokenPolicy, 'capacity' | 'offlineGrace'>

export interface TokenCopiesDependencies {
  readonly store: SharedStore
  readonly clock: Clock
  readonly policy: CopyPolicy
  /** The grants of the requests in flight. */
  readonly inFlight: () => Iterable<string>
  /** Ends the requests in flight of these grants (C8). */
  readonly cut: (grants: readonly string[]) => void
  /** The longest wait for a question's turn (ms). */
  readonly timeout: number
}

/** Questions at a time, and further ones that wait. Tokens that nobody issued must not become a flood at the server. */
const QUESTIONS = { inside: 64, waiting: 1024 }

/** How long a sidecar may hear nothing before it knows that it is deaf (ms): one wait for messages and one time-out, with a reserve. */
const DEAF = 5_000

/** How long an unknown token is remembered (ms). Nobody can present a token before it is issued, so it only has to stop a flood. */
const UNKNOWN_FOR = 10_000

/** How many unknown tokens and revoked grants are remembered. */
const REMEMBERED = 10_000

const UNKNOWN: TokenLookup = { kind: 'refused', cause: 'unknown' }
const REVOKED: TokenLookup = { kind: 'refused', cause: 'revoked' }
const EXPIRED: TokenLookup = { kind: 'refused', cause: 'expired' }
const UNAVAILABLE: TokenLookup = { kind: 'unavailable' }

export function createTokenCopies({
  store,
  clock,
  policy,
  inFlight,
  cut,
  timeout,
}: TokenCopiesDependencies): TokenCopies {
  let { offlineGrace } = policy
  const table = createGrantTable(policy.capacity)
  const asked = new Map<Digest, Promise<TokenLookup>>()
  const questions = createBoundedQueue({ ...QUESTIONS, maxWait: timeout })
  /** Until when a token is taken for unknown. */
  const unknown = new Map<Digest, number>()
  /** The grants that were revoked last, and when. */
  const revoked = new Map<string, number>()
  const keys = [`${store.prefix}state`]
  let epoch = ''
  let heardAt = Number.NEGATIVE_INFINITY

  const now = (): number => Math.floor(clock.monotonic())
  const silence = (): number => clock.monotonic() - heardAt
  const holds = (): boolean => silence() <= Math.max(DEAF, offlineGrace)

  function identify(accessToken: string): TokenLookup | Promise<TokenLookup> {
    if (!looksMinted(accessToken)) return UNKNOWN
    const digest = digestToken(accessToken)
    const token = table.find(digest)
    if (token !== undefined && holds()) {
      if (clock.monotonic() >= token.expiresAt) return EXPIRED
      table.touch(token.grant)
      return { kind: 'valid', grant: token.grant.id }
    }
    const reason = table.removalReason(digest)
    if (reason !== undefined) return reason === 'expired' ? EXPIRED : REVOKED
    if (now() < (unknown.get(digest) ?? 0)) return UNKNOWN
    const running = asked.get(digest) ?? ask(digest).finally(() => asked.delete(digest))
    asked.set(digest, running)
    return running
  }

  async function ask(digest: Digest): Promise<TokenLookup> {
    const entry = await questions.enter()
    if (entry.kind !== 'entered') return UNAVAILABLE
    try {
      const before = now()
      const reply = await store.run(LOOK_UP, keys, [store.prefix, digest])
      const answer = Array.isArray(reply) ? reply.map(String) : []
      const [grant = '', client = '', granted, of, left, founded] = answer
      if (of === undefined) {
        // A server that has lost the epoch may have lost the token, too.
        const [present = ''] = answer
        if (present === '' || Number(present) < Number(epoch)) return UNAVAILABLE
        remember(unknown, digest, now() + UNKNOWN_FOR)
        return UNKNOWN
      }
      // Whether the copies stay in a founded epoch depends on the password, so it is left to the agreement on that.
      if (of !== founded) begin(of)
      if (revoked.has(grant) || Number(of) < Number(epoch)) return REVOKED
      const until = before + Number(left)
      add({ digest, grant, client, epoch: of, granted: Number(granted), until })
      return { kind: 'valid', grant }
    } catch (error) {
      if (error instanceof StoreUnavailable) return UNAVAILABLE
      throw error
    } finally {
      entry.leave()
    }
  }

  function add({ digest, grant: id, client, epoch: of, granted, until }: TokenCopy): void {
    if (revoked.has(id) || of !== epoch || table.find(digest) !== undefined) return
    const at = now()
    const issuedAt = Math.floor(at - Math.max(0, clock.wall() - granted))
    const grant = table.grant(id) ?? table.open(id, client, issuedAt)
    table.add(grant, 'access', digest, at, Math.floor(until))
    table.evict(grant)
  }

  function drop(id: string, reason: 'revoked' | 'evicted'): void {
    for (const token of table.grant(id)?.tokens ?? []) table.drop(token, reason)
  }

  const known = (): string[] => [...new Set([...[...table.grants()].map(({ id }) => id), ...inFlight()])]

  function dropAll(reason: 'revoked' | 'evicted'): void {
    const grants = known()
    for (const id of grants) drop(id, reason)
    cut(grants)
  }

  function begin(next: string): void {
    if (Number(next) <= Number(epoch)) return
    epoch = next
    dropAll('revoked')
  }

  return {
    identify,
    grantOf: (digest) => table.find(digest)?.grant.id,
    add,
    revoke(grants) {
      for (const id of grants) {
        remember(revoked, id, now())
        drop(id, 'revoked')
      }
      cut(grants)
    },
    evict(grants) {
      for (const id of grants) drop(id, 'evicted')
    },
    begin,
    adopt(next) {
      if (Number(next) > Number(epoch)) epoch = next
    },
    // The server may know them as tokens of the new epoch, so they are asked for again.
    dropAll: () => dropAll('evicted'),
    get epoch() {
      return epoch
    },
    get hears() {
      return silence() <= DEAF
    },
    heard() {
      heardAt = clock.monotonic()
    },
    forgetUnknown: () => unknown.clear(),
    orphan() {
      const until = now() + offlineGrace
      for (const { id, client, issuedAt, tokens } of [...table.grants()]) {
        drop(id, 'evicted')
        const grant = table.open(id, client, issuedAt)
        for (const { digest, issuedAt: at, expiresAt } of tokens)
          table.add(grant, 'access', digest, at, Math.min(expiresAt, until))
      }
    },
    grants: known,
    revoked: () => [...revoked.keys()].slice(-1_000),
    counts: () => table.counts(),
    sweep() {
      table.expire(now())
    },
    applyPolicy(next) {
      offlineGrace = next.offlineGrace
      table.resize(next.capacity)
      table.evict()
    },
  }
}

/** Adds an entry as the newest one, and removes the oldest of too many. */
function remember(memory: Map<string, number>, key: string, value: number): void {
  memory.delete(key)
  memory.set(key, value)
  const [oldest] = memory.keys()
  if (memory.size > REMEMBERED && oldest !== undefined) memory.delete(oldest)
}
