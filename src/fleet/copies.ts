import { nameOfGrant } from '../http/scope.ts'
import { type Clock, createWallOffset } from '../system/clock.ts'
import type { Later } from '../system/later.ts'
import { endOfGrant, type TokenPolicy } from '../tokens/grant-rules.ts'
import { createGrantTable, lastUse } from '../tokens/grant-table.ts'
import { createLookUp, REFUSED, type TokenLookup } from '../tokens/look-up.ts'
import type { Digest } from '../tokens/mint.ts'
import { grantsInFlight, type LiveRequests } from '../tokens/revocation.ts'
import { createEpoch, type FleetEvent } from './epoch.ts'
import { createTokenQuestions, type FoundToken } from './questions.ts'
import { FOLLOW_WAIT, type SharedStore } from './shared-store.ts'

/** An access token of the shared store, as this sidecar knows it. */
type TokenCopy = Omit<FoundToken, 'since'> & { readonly digest: Digest }

export type TokenCopies = ReturnType<typeof createTokenCopies>

type CopyPolicy = Pick<TokenPolicy, 'capacity' | 'accessLifetime' | 'offlineGrace' | 'grantLifetime'>

interface Dependencies {
  readonly clock: Clock
  readonly live: LiveRequests
  /** Whether the configuration has this name; the empty name stands for `password`. */
  readonly hasName: (name: string) => boolean
  readonly store: SharedStore
  readonly policy: CopyPolicy
  /** The longest wait for a question's turn, and then for its answer (ms). */
  readonly timeout: number
}

/** How late a message of the store may be (ms): see `deafAfter`. */
const RESERVE = 2_000

/** The most ended grants that are remembered. */
const MOST_ENDED = 10_000

/**
 * The access tokens of the shared store that this sidecar has seen. While the sidecar hears of revocations, a copy decides as the original
 * would, so an admitted request costs no round trip.
 */
export function createTokenCopies(deps: Dependencies) {
  const { store, clock, policy, live, hasName, timeout } = deps
  let { accessLifetime, offlineGrace = 0, grantLifetime = 'off' } = policy
  const table = createGrantTable(policy.capacity)
  const wallOffset = createWallOffset(clock)
  const epoch = createEpoch(react)
  const questions = createTokenQuestions(store, clock, epoch, timeout)
  /** The grants that have ended last, the oldest first. The answer to a question that was under way does not bring them back. */
  const ended = new Map<string, 'revoked' | 'evicted'>()
  /** After this time without a message (ms), this sidecar counts as deaf: it may miss revocations. */
  const deafAfter = FOLLOW_WAIT + timeout + RESERVE
  /** Whether the requests in flight were cut at the end of the grace. */
  let isCut = false
  let heardAt = Number.NEGATIVE_INFINITY
  /** The copies count until then (ms), and while the sidecar hears of revocations. */
  const known = { table, until: Number.NEGATIVE_INFINITY }

  const now = (): number => Math.floor(clock.monotonic())
  const leftOfLogin = (age: number): number => endOfGrant(-age, { grantLifetime })
  function prolong(): void {
    known.until = heardAt + Math.max(deafAfter, offlineGrace)
  }

  /** Looks up an access token: synchronously if a copy or the memory of removed ones decides, else with a question to the server. */
  const identify = createLookUp(
    known,
    clock,
    (digest, client): Later<TokenLookup> =>
      questions.isUnknown(digest) ? REFUSED.unknown : ask(digest, client),
  )

  async function ask(digest: Digest, client: string, isRepeated = false): Promise<TokenLookup> {
    const answer = await questions.ask(digest, client)
    if (answer === 'unavailable' || !copies.inStep) return { kind: 'unavailable' }
    if (answer === 'unknown') return REFUSED.unknown
    // The sidecars have different `passwords`: this one does not know what the name may do.
    const name = nameOfGrant(answer.grant)
    if (!hasName(name)) return REFUSED.unknown
    if (epoch.owed.names.has(name)) return { kind: 'unavailable' }
    epoch.apply({ kind: 'begun', epoch: answer.epoch, since: answer.since })
    const how = ended.get(answer.grant)
    if (how === 'evicted') return REFUSED.unknown
    if (how === 'revoked' || !epoch.keeps(name, answer.epoch)) return REFUSED.revoked
    // An epoch has begun since the answer was made, or the server has lost the present one.
    if (epoch.isBehind(answer.epoch)) return isRepeated ? { kind: 'unavailable' } : ask(digest, client, true)
    // The token was issued under a policy with a longer `grantLifetime`.
    if (answer.handout === undefined && leftOfLogin(answer.age) <= 0) return REFUSED.expired
    add({ ...answer, digest })
    use(answer.grant)
    return { kind: 'valid', grant: answer.grant }
  }

  /** Adds a copy, but not of a token of another epoch: until the feed announces that epoch, the server is asked for the token. */
  function add({ digest, grant: id, client, epoch: of, age, until, handout }: TokenCopy): void {
    if (ended.has(id) || of !== epoch.present || table.find(digest) !== undefined) return
    if (!hasName(nameOfGrant(id))) return
    const at = now()
    const issuedAt = Math.floor(at - age)
    const grant = table.grant(id) ?? table.open(id, client, issuedAt, handout?.label)
    // A server whose clock was set back states too long a remaining time.
    const most =
      handout === undefined
        ? Math.min(at + accessLifetime, endOfGrant(grant.issuedAt, { grantLifetime }))
        : at + handout.lifetime
    table.add(grant, 'access', digest, at, Math.floor(Math.min(until, most)))
    table.evict(grant)
  }

  function use(id: string): void {
    const grant = table.grant(id)
    if (grant !== undefined) table.touch(grant, clock.monotonic())
  }

  function drop(id: string, reason: 'revoked' | 'evicted'): void {
    for (const token of table.grant(id)?.tokens ?? []) table.drop(token, reason)
  }

  const grants = (): string[] => [
    ...new Set([...[...table.grants()].map(({ id }) => id), ...grantsInFlight(live)]),
  ]

  function dropOf(concerns: (name: string) => boolean, reason: 'revoked' | 'evicted'): void {
    const theirs = grants().filter((id) => concerns(nameOfGrant(id)))
    for (const id of theirs) drop(id, reason)
    live.cut(theirs)
  }

  /** Removes the copies that an event voids. For a token whose password is unsettled, the server is asked again. */
  function react(event: FleetEvent, before: string): void {
    table.expire(now())
    if (event.kind === 'begun') dropOf((name) => !epoch.keeps(name, before), 'revoked')
    else if (event.kind === 'unsettled') dropOf((name) => name === event.name, 'evicted')
    else if (event.kind === 'removed') dropOf((name) => name === event.name, 'revoked')
    else {
      end(event.grants, event.kind)
      if (event.kind === 'revoked') live.cut(event.grants)
      else {
        const evicted = new Set(event.grants)
        live.endStreams(clock.monotonic(), (grant) => evicted.has(grant))
      }
    }
  }

  function end(grants: readonly string[], how: 'revoked' | 'evicted'): void {
    for (const id of grants) {
      ended.delete(id)
      ended.set(id, how)
      const [oldest] = ended.keys()
      if (ended.size > MOST_ENDED && oldest !== undefined) ended.delete(oldest)
      drop(id, how)
    }
  }

  function sweep(): void {
    table.expire(now())
    // After the grace, every request in flight may belong to a revoked grant.
    if (clock.monotonic() <= known.until) isCut = false
    else if (!isCut && heardAt !== Number.NEGATIVE_INFINITY) {
      isCut = true
      live.cut([...grantsInFlight(live)])
    }
  }

  const copies = {
    identify,
    grantOf(digest: Digest): string | undefined {
      table.expire(now())
      return table.find(digest)?.grant.id
    },
    /** When this sidecar last saw a use of a grant (wall clock, ms); null if it saw none, or has no copy of a token of the grant. */
    usedAt(id: string): number | null {
      const grant = table.grant(id)
      return grant === undefined ? null : lastUse(grant, wallOffset())
    },
    use,
    add,
    epoch,
    /**
     * Whether this sidecar has read the state since its connection to the server began. Until then the server may be a restored backup,
     * with tokens that were revoked later. The feed sets it.
     */
    inStep: true,
    /** Whether this sidecar hears of revocations: the last message is not older than `deafAfter`. */
    get hears(): boolean {
      return clock.monotonic() - heardAt <= deafAfter
    },
    /** Notes that this sidecar has heard of every revocation up to now. */
    heard(): void {
      heardAt = clock.monotonic()
      prolong()
    },
    /** Forgets the unknown tokens: from now on another server may answer, which may know them. */
    forgetUnknown: questions.forget,
    /** How much longer a login of this age lasts (ms). */
    leftOfLogin,
    grants,
    /** At most `most` grants with a copy, the most recently used first. */
    recent: (most: number): readonly string[] => table.recent(most).map(({ id }) => id),
    counts: table.counts,
    sweep,
    applyPolicy(next: CopyPolicy): void {
      ;({ accessLifetime, offlineGrace = 0, grantLifetime = 'off' } = next)
      prolong()
      table.limit(next)
      table.resize(next.capacity)
      table.evict()
    },
  }
  return copies
}
