import type { Clock } from '../system/clock.ts'
import type { Backend } from '../tokens/backend.ts'
import { mostLogins, shareOf, surplusOf } from '../tokens/grant-rules.ts'
import { digestToken, type RandomBytes } from '../tokens/mint.ts'
import {
  type GrantSummary,
  MOST_ISSUED,
  MOST_LISTED,
  type TokenEvents,
  type TokenPolicy,
} from '../tokens/state.ts'
import type { TokenCopies } from './copies.ts'
import { REVOKE_ALL } from './epoch.ts'
import { describeWithUse, listGrants, listIssued, listWithLost, revokeAtServer } from './grants.ts'
import { sayRevoked } from './operator-words.ts'
import { createSharedRecords, type GrantChange, memberOf } from './records.ts'
import { sealResponse } from './sealed-response.ts'
import { listOf, type SharedStore, type StoreOperation, StoreUnavailable } from './shared-store.ts'

interface Dependencies {
  readonly store: SharedStore
  readonly copies: TokenCopies
  readonly policy: TokenPolicy
  readonly clock: Clock
  readonly random: RandomBytes
  readonly listener: Pick<TokenEvents, 'evicted'>
}

/**
 * The grants that several sidecars share. The server is authoritative: each change is one atomic step there. The copies of this sidecar
 * follow at once, the copies of the others within the delay of a message. The server evicts the grant that expires first.
 */
export function createSharedBackend({ store, copies, clock, random, listener, ...deps }: Dependencies) {
  let { policy } = deps
  const known = copies.epoch
  const records = createSharedRecords(store)

  /** Throws if the server has lost the epoch: it may have lost the token, too, so its answer proves nothing. */
  function requirePresent(operation: StoreOperation, epoch = ''): void {
    if (known.isBehind(epoch))
      throw new StoreUnavailable(operation, 'loading', 'the server has lost its state')
  }

  function find(operation: StoreOperation, presented: string) {
    const most = shareOf(policy.capacity) - (policy.rotateRefresh ? 2 : 1)
    return records.find(operation, presented, most, policy)
  }

  /**
   * Sets the tokens of a grant, and keeps copies of the access tokens among them.
   *
   * @param age of the login (ms)
   */
  async function set(change: GrantChange, age: number) {
    const asked = clock.monotonic()
    const done = await records.set(change)
    if (typeof done === 'string') return done
    const { access, refresh, grants } = done.evicted
    if (grants.length > 0) known.apply({ kind: 'evicted', grants })
    if (access > 0) listener.evicted('access', access)
    if (refresh > 0) listener.evicted('refresh', refresh)
    const { grant, client, epoch } = change.what === 'refresh' ? change.token : change.grant
    for (const { kind, digest, lifetime } of change.added) {
      if (kind !== 'access') continue
      const handout = change.what === 'issued' ? { label: change.label, lifetime } : undefined
      copies.add({ digest, grant, client, epoch, age, until: asked + lifetime, handout })
    }
    return done
  }

  return {
    async read(presented) {
      const { now, epoch, token } = await find('refresh', presented)
      requirePresent('refresh', epoch)
      if (token === undefined) return { now, token }
      return {
        now,
        token: {
          ...token,
          async set({ added, spends }) {
            const change = {
              what: 'refresh' as const,
              ...{ token, added, grantLifetime: policy.grantLifetime },
              dropped: surplusOf(token.oldest, token.over, memberOf('refresh', token.digest)),
              response: spends === undefined ? '' : sealResponse(spends.response, presented, random),
              grace: spends?.grace ?? 0,
            }
            if ((await set(change, now - token.granted)) === 'stale') return false
            copies.use(token.grant)
            return true
          },
        },
      }
    },
    open({ id, client, epoch, added, label }) {
      const what = label === undefined ? 'login' : 'issued'
      const most = label === undefined ? mostLogins(policy.capacity) : (policy.issued ?? MOST_ISSUED)
      const grant = { grant: id, client, epoch }
      return set({ what, grant, added, label: label ?? '', most, grantLifetime: 'off' }, 0)
    },
    async remove(grants, reason, which) {
      const live: string[] = []
      for await (const { page, held } of revokeAtServer(store, grants, sayRevoked(which, reason))) {
        live.push(...held)
        known.apply({ kind: 'revoked', grants: page })
      }
      return live
    },
    async removeAll() {
      const { prefix, runDurably } = store
      // Only the log needs the list: the new epoch voids all grants, listed or not.
      const listed = await listGrants(store, copies, MOST_LISTED).catch(unlisted)
      const reply = await runDurably(REVOKE_ALL, [`${prefix}state`], [prefix, Number(known.present)])
      const [count, epoch = ''] = listOf(reply).map(String)
      requirePresent('revoke', epoch)
      known.apply({ kind: 'begun', epoch })
      return { count: Number(count), ids: listed.grants.map(({ id }) => id) }
    },
    async grantOf(token) {
      const { epoch, token: found } = await find('revoke', token)
      // The server may have lost the token, and this sidecar still has a copy.
      const grant = found?.grant ?? copies.grantOf(digestToken(token))
      if (grant === undefined) requirePresent('revoke', epoch)
      return grant
    },
    use: copies.use,
    identify: copies.identify,
    async grants(): Promise<readonly GrantSummary[]> {
      return (await listGrants(store, copies)).grants.toReversed()
    },
    async owners() {
      const { epoch, grants, lost } = await listWithLost(store)
      requirePresent('revoke', epoch)
      return { grants, lost }
    },
    recentGrants: (most) => listGrants(store, copies, most),
    describe: (ids) => describeWithUse(store, copies, ids),
    issued: () => listIssued(store, copies),
    counts: copies.counts,
    sweep: copies.sweep,
    applyPolicy(next) {
      policy = next
      copies.applyPolicy(next)
    },
  } satisfies Backend
}

function unlisted(error: unknown): { readonly grants: readonly GrantSummary[] } {
  if (error instanceof StoreUnavailable) return { grants: [] }
  throw error
}
