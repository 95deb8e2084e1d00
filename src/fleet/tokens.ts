import type { Clock } from '../system/clock.ts'
import {
  endOfGrant,
  endsTooSoon,
  lifetimesWithin,
  refreshMeans,
  shareOf,
  surplusOf,
} from '../tokens/grant-rules.ts'
import { longestUnused, OPERATOR } from '../tokens/handout.ts'
import {
  digestToken,
  looksMinted,
  type Minted,
  mintExchange,
  mintGrantId,
  mintPair,
  mintToken,
  type RandomBytes,
} from '../tokens/mint.ts'
import {
  type AllIssued,
  grantsInFlight,
  type HandedOut,
  type Handout,
  type IssuedTokens,
  isTheirs,
  type LiveRequests,
  MOST_ISSUED,
  MOST_LISTED,
  type Revocation,
  type TokenEvents,
  type TokenPolicy,
  type Tokens,
  type Unavailable,
  unfinishedOf,
} from '../tokens/state.ts'
import type { TokenCopies } from './copies.ts'
import { REVOKE_ALL } from './epoch.ts'
import { describeGrants, describeWithUse, listGrants, listWithLost, revokeAtServer } from './grants.ts'
import { sayRevoked } from './operator-words.ts'
import type { FoundToken } from './questions.ts'
import { createSharedRecords, type GrantChange, memberOf, type StoredToken } from './records.ts'
import { HAND_OUT, ISSUE, REVOKE_TOKEN } from './scripts.ts'
import { openResponse, sealResponse } from './sealed-response.ts'
import {
  listOf,
  type Script,
  type SharedStore,
  type StoreOperation,
  type StoreReply,
  StoreUnavailable,
} from './shared-store.ts'

interface Dependencies {
  readonly store: SharedStore
  readonly copies: TokenCopies
  readonly live: Pick<LiveRequests, 'granted'>
  readonly policy: TokenPolicy
  readonly clock: Clock
  readonly random: RandomBytes
  readonly listener: TokenEvents
}

/** The most attempts of a refresh whose grant changes between read and write. Two concurrent refreshes need two. */
const ATTEMPTS = 5

/**
 * The tokens that several sidecars share. The server is authoritative: each change is one atomic step there (a refresh reads first, then
 * compares and sets). The copies of this sidecar follow at once, the copies of the others within the delay of a message.
 */
export function createSharedTokens(deps: Dependencies) {
  const { store, copies, live, clock, random, listener } = deps
  let { policy } = deps
  const known = copies.epoch
  const keys = [`${store.prefix}state`]
  const records = createSharedRecords(store)

  function lasting(script: Script, ...args: readonly (string | number)[]): Promise<StoreReply> {
    return store.runDurably(script, keys, [store.prefix, ...args])
  }

  /**
   * Issues the tokens of a new grant. `stale`: a later epoch has begun, so the password has to be verified again.
   *
   * @param epoch the epoch under which the password was verified
   * @param name of the password; empty for `password`
   */
  async function issue(
    client: string,
    grantType: string,
    epoch: string,
    name = '',
  ): Promise<IssuedTokens | 'stale'> {
    const { capacity } = policy
    const grant = mintGrantId(random, name)
    const lifetimes = lifetimesWithin(policy, endOfGrant(0, policy))
    const { response, added } = mintPair(lifetimes, random)
    const asked = clock.monotonic()
    const most = Math.floor(capacity / 2)
    const tokens = added.flatMap(({ digest, lifetime }) => [digest, lifetime])
    const [kind, ofAccess, ofRefresh, ...evicted] = listOf(
      await lasting(ISSUE, epoch, grant, client, ...tokens, most),
    )
    if (kind !== 'issued') return 'stale'
    known.apply({ kind: 'evicted', grants: evicted.map(String) })
    if (Number(ofAccess) > 0) listener.evicted('access', Number(ofAccess))
    if (Number(ofRefresh) > 0) listener.evicted('refresh', Number(ofRefresh))
    const digest = digestToken(response.accessToken)
    copies.add({ digest, grant, client, epoch, age: 0, until: asked + lifetimes.accessLifetime })
    listener.issued(grantType)
    return { grant, ...response }
  }

  /**
   * Issues a token that the operator hands out, unless the bound of issued grants is reached. `stale`: as for `issue`. `reportHandOut`
   * counts it.
   *
   * @param epoch the epoch in which the password of the name is the present one
   */
  async function handOut(handout: Handout, epoch: string): Promise<HandedOut | AllIssued | 'stale'> {
    const { name, label, lifetime } = handout
    const grant = mintGrantId(random, name)
    const accessToken = mintToken(random)
    const digest = digestToken(accessToken)
    const until = clock.monotonic() + lifetime
    const args = [epoch, grant, OPERATOR, digest, lifetime, label, policy.issued ?? MOST_ISSUED]
    const [kind, ...said] = listOf(await lasting(HAND_OUT, ...args)).map(String)
    if (kind === 'full') return { longestUnused: longestUnused(await describeWithUse(store, copies, said)) }
    if (kind !== 'issued') return 'stale'
    copies.add({ digest, grant, client: OPERATOR, epoch, age: 0, until, handout })
    return { accessToken, grant, expiresAt: Number(said[0]) + lifetime }
  }

  async function refresh(presented: string): Promise<IssuedTokens | undefined> {
    if (!looksMinted(presented)) return undefined
    const { rotateRefresh: rotates, refreshGrace: grace, capacity } = policy
    const most = shareOf(capacity) - (rotates ? 2 : 1)
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const { now, epoch, token } = await records.find(digestToken(presented), most, policy)
      requirePresent('refresh', epoch)
      const meaning = refreshMeans(token, now, grace)
      if (token === undefined || meaning === 'unknown') return undefined
      if (meaning === 'retry') return openResponse(token.response, presented)
      if (meaning === 'reuse') {
        await revokeGrants([token.grant], 'refresh_token_reuse')
        return undefined
      }
      const { granted } = token
      const lifetimes = lifetimesWithin(policy, endOfGrant(granted, policy) - now)
      if (endsTooSoon(lifetimes)) return undefined
      const minted = mintExchange(presented, rotates, lifetimes, random)
      const response = rotates ? sealResponse(minted.response, presented, random) : undefined
      const until = clock.monotonic() + lifetimes.accessLifetime
      if (await exchange(token, minted, { response, grace, until, age: now - granted }))
        return { grant: token.grant, ...minted.response }
    }
    throw new StoreUnavailable('refresh', 'error', 'the token keeps changing')
  }

  /** Returns whether the tokens were issued. They were not if another refresh or a revocation has changed the token since it was read. */
  async function exchange(
    token: StoredToken,
    { response, added }: Minted,
    { until, age, ...spends }: Pick<GrantChange, 'response' | 'grace'> & Pick<FoundToken, 'until' | 'age'>,
  ): Promise<boolean> {
    const { grant, client, epoch } = token
    const { grantLifetime } = policy
    const dropped = surplusOf(token.oldest, token.over, memberOf('refresh', token.digest))
    if (!(await records.change(token, { added, dropped, grantLifetime, ...spends }))) return false
    copies.add({ digest: digestToken(response.accessToken), grant, client, epoch, age, until })
    copies.use(grant)
    listener.issued('refresh_token')
    return true
  }

  /** Throws if the server has lost the epoch: it may have lost the token, too, so its answer proves nothing. */
  function requirePresent(operation: StoreOperation, epoch = ''): void {
    if (known.isBehind(epoch)) throw lostState(operation)
  }

  function revoked(grants: readonly string[], reason: string): number {
    known.apply({ kind: 'revoked', grants })
    if (grants.length > 0) listener.revoked(grants.length, reason, grants)
    return grants.length
  }

  /** Returns the number of revoked grants: those live at the server, and those that only a request in flight here still used. */
  async function revokeGrants(
    grants: readonly string[],
    reason: string,
    which: Revocation = { grants },
  ): Promise<number> {
    const inFlight = grantsInFlight(live)
    const ended: string[] = []
    for await (const { page, held } of revokeAtServer(store, grants, sayRevoked(which, reason))) {
      const wereLive = new Set(held)
      ended.push(...page.filter((id) => wereLive.has(id) || inFlight.has(id)))
      known.apply({ kind: 'revoked', grants: page })
    }
    if (ended.length > 0) listener.revoked(ended.length, reason, ended)
    return ended.length
  }

  async function revoke(which: Revocation, reason: string): Promise<number> {
    if ('grant' in which) return revokeGrants([which.grant], reason)
    if ('grants' in which) return revokeGrants(which.grants, reason)
    if ('token' in which) {
      const digest = digestToken(which.token)
      const [epoch, ...found] = listOf(await lasting(REVOKE_TOKEN, digest)).map(String)
      if (found.length > 0) return revoked(found, reason)
      const grant = copies.grantOf(digest)
      // The server has lost the token, and this sidecar still has a copy.
      if (grant !== undefined) return revokeGrants([grant], reason)
      requirePresent('revoke', epoch)
      return 0
    }
    const unfinished = await unfinishedHere(which)
    if ('client' in which || 'name' in which) {
      const { epoch, grants, lost } = await listWithLost(store)
      requirePresent('revoke', epoch)
      const theirs = grants.filter((grant) => isTheirs(which, grant)).map(({ id }) => id)
      // The server does not know the owner of a lost grant, which is over in any case.
      return revokeGrants([...new Set([...theirs, ...unfinished, ...lost])], reason, which)
    }
    // Only the log needs the list: the new epoch voids all grants, listed or not.
    const listed = await orUnavailable(listGrants(store, copies, MOST_LISTED))
    const [held, epoch = ''] = listOf(await lasting(REVOKE_ALL, Number(known.present))).map(String)
    requirePresent('revoke', epoch)
    known.apply({ kind: 'begun', epoch })
    const count = Number(held) + unfinished.length
    const ids = listed === 'unavailable' ? [] : listed.grants.map(({ id }) => id)
    if (count > 0) listener.revoked(count, reason, [...ids, ...unfinished])
    return count
  }

  async function unfinishedHere(which: Revocation): Promise<readonly string[]> {
    const found = await describeGrants(store, [...grantsInFlight(live)])
    const ids = new Set(found.map(({ id }) => id))
    return unfinishedOf(which, live, (id) => ids.has(id))
  }

  const allGrants = async () => (await listGrants(store, copies)).grants.toReversed()

  const tokens: Tokens = {
    refresh: (presented) => orUnavailable(refresh(presented)),
    identify: copies.identify,
    revoke: (which, reason) => orUnavailable(revoke(which, reason)),
    grants: () => orUnavailable(allGrants()),
    recentGrants: (most) => orUnavailable(listGrants(store, copies, most)),
    owners: () => orUnavailable(allGrants()),
    describe: (ids) => orUnavailable(describeWithUse(store, copies, ids)),
    counts: copies.counts,
    sweep: copies.sweep,
    applyPolicy(next) {
      policy = next
      copies.applyPolicy(next)
    },
  }
  return {
    ...tokens,
    issue: (...grant: Parameters<typeof issue>) => orUnavailable(issue(...grant)),
    handOut: (handout: Handout, epoch: string) => orUnavailable(handOut(handout, epoch)),
  }
}

function lostState(operation: StoreOperation): StoreUnavailable {
  return new StoreUnavailable(operation, 'loading', 'the server has lost its state')
}

/** Resolves with `unavailable` if the store does not answer. Every other rejection is a bug, and passes. */
function orUnavailable<T>(asked: Promise<T>): Promise<T | Unavailable> {
  return asked.catch((error: unknown) => {
    if (error instanceof StoreUnavailable) return 'unavailable'
    throw error
  })
}
