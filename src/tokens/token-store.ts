import { randomBytes } from 'node:crypto'
import { type Later, withAnswer } from '../system/later.ts'
import { type Backend, BackendUnavailable, type Now, type Unavailable } from './backend.ts'
import { classifyRefresh, endOfGrant, lifetimesAt, planExchange, type TokenPolicy } from './grant-rules.ts'
import type { GrantOwner, GrantSummary, RecentGrants } from './grant-table.ts'
import { type AllIssued, type HandedOut, type Handout, longestUnused, OPERATOR } from './handout.ts'
import {
  digestToken,
  type IssuedTokens,
  looksMinted,
  mintGrantId,
  mintToken,
  mintTokens,
  type RandomBytes,
} from './mint.ts'
import { grantsInFlight, isTheirs, type LiveRequests, type Revocation, unfinishedOf } from './revocation.ts'
import type { TokenEvents } from './state-events.ts'

/**
 * The token operations of requests and operators. A store that several sidecars share returns promises; a store in this
 * process returns values, which saves the cost of promises. A rejected promise is a bug.
 */
export interface Tokens extends Pick<Backend, 'identify' | 'counts' | 'applyPolicy' | 'sweep'> {
  /** Exchanges a live refresh token (C6). `undefined` (`invalid_grant`) for any other string, also for an access token. */
  refresh(refreshToken: string): Later<IssuedTokens | undefined | Unavailable>
  /** Revokes grants with all their tokens, durably. Returns the number of grants. */
  revoke(which: Revocation, reason: string): Later<number | Unavailable>
  grants(): Later<readonly GrantSummary[] | Unavailable>
  /**
   * The most recently used grants, at most `most`, at a cost that depends on `most` only. With a shared store, only the uses that this
   * sidecar saw count; other grants follow, the last to expire first.
   */
  recentGrants(most: number): Later<RecentGrants | Unavailable>
  /** The owners of all live grants, the least recently used first, issued grants last. With a shared store: the first to expire first. */
  owners(): Later<readonly GrantOwner[] | Unavailable>
  /** The summaries of these grants, without those that are not live. */
  describe(ids: readonly string[]): Later<readonly GrantSummary[] | Unavailable>
}

interface Dependencies<B extends Backend> {
  /** Must have the same policy. */
  readonly backend: B
  readonly policy: TokenPolicy
  readonly live: Pick<LiveRequests, 'cut' | 'granted'>
  readonly listener: Pick<TokenEvents, 'issued' | 'revoked'>
  readonly random?: RandomBytes
}

/** The most attempts of a refresh whose grant changes between read and write. Two concurrent refreshes need two. */
const ATTEMPTS = 5

/** The token operations, with those that need a password: see `issuing.ts`. */
export interface TokenStore extends Tokens {
  /**
   * Issues the tokens of a new grant. `stale`: a later epoch has begun, so the password has to be verified again.
   *
   * @param grantType the `grant` label of the metric
   * @param name of the password; empty for `password`
   * @param epoch the epoch under which the password was verified; empty without a shared store
   */
  issue(
    client: string,
    grantType: string,
    name?: string,
    epoch?: string,
  ): Later<IssuedTokens | 'stale' | Unavailable>
  /**
   * Issues a token that the operator hands out, unless the bound of issued grants is reached. `reportHandOut` counts it.
   *
   * @param epoch as for `issue`, of the password of the name
   */
  handOut(handout: Handout, epoch?: string): Later<HandedOut | AllIssued | 'stale' | Unavailable>
}

/** Over a backend that answers at once, the store does so, too. */
export function createTokenStore(deps: Dependencies<Now<Backend>>): Now<TokenStore>
export function createTokenStore(deps: Dependencies<Backend>): TokenStore
/** The rules of issuing, refreshing and revoking, over the records of a backend. */
export function createTokenStore(deps: Dependencies<Backend>): TokenStore {
  const { backend, live, listener, random = randomBytes } = deps
  let { policy } = deps

  function issue(client: string, grantType: string, name = '', epoch = ''): Later<IssuedTokens | 'stale'> {
    const id = mintGrantId(random, name)
    const { response, added } = mintTokens(lifetimesAt(0, policy), random)
    return withAnswer(backend.open({ id, client, epoch, added }), (opened) => {
      if (typeof opened === 'string') return 'stale'
      listener.issued(grantType)
      return { grant: id, ...response }
    })
  }

  function handOut({ name, label, lifetime }: Handout, epoch = ''): Later<HandedOut | AllIssued | 'stale'> {
    const grant = mintGrantId(random, name)
    const accessToken = mintToken(random)
    const added = [{ kind: 'access', digest: digestToken(accessToken), lifetime }] as const
    const opening = backend.open({ id: grant, client: OPERATOR, epoch, label, added })
    return withAnswer(opening, (opened): Later<HandedOut | AllIssued | 'stale'> => {
      if (opened === 'stale') return opened
      if (opened === 'full')
        return withAnswer(backend.issued(), (issued) => ({ longestUnused: longestUnused(issued) }))
      return { accessToken, grant, expiresAt: Math.round(opened.at + lifetime) }
    })
  }

  function refresh(presented: string, attempt = 1): Later<IssuedTokens | undefined> {
    if (!looksMinted(presented)) return undefined
    return withAnswer(backend.read(presented), ({ now, token }) => {
      const meaning = classifyRefresh(token, now, policy.refreshGrace)
      if (token === undefined || meaning === 'unknown') return undefined
      // The login is over, though its tokens may be of a policy under which it lasted longer.
      if (now >= endOfGrant(token.granted, policy)) return undefined
      const { grant } = token
      if (meaning === 'reuse') return withAnswer(revoke({ grant }, 'refresh_token_reuse'), () => undefined)
      if (meaning === 'retry' && token.response !== undefined) {
        backend.use(grant)
        return token.response
      }
      const plan = planExchange(token, now, policy)
      if (plan === undefined) return undefined
      const { response, added } = mintTokens(plan.lifetimes, random, plan.rotates ? undefined : presented)
      const issued = { grant, ...response }
      const spends = plan.rotates ? { response: issued, grace: policy.refreshGrace } : undefined
      return withAnswer(token.set({ added, spends }), (isSet) => {
        if (isSet) {
          listener.issued('refresh_token')
          return issued
        }
        if (attempt === ATTEMPTS) throw new BackendUnavailable('the token keeps changing')
        return refresh(presented, attempt + 1)
      })
    })
  }

  function revoke(which: Revocation, reason: string): Later<number> {
    if ('all' in which) return revokeAll(which, reason)
    return withAnswer(grantsOf(which), (grants) => {
      const inFlight = grantsInFlight(live)
      return withAnswer(backend.remove(grants, reason, which), (removed) => {
        const wereLive = new Set(removed)
        return ended(
          grants.filter((id) => wereLive.has(id) || inFlight.has(id)),
          reason,
        )
      })
    })
  }

  function revokeAll(which: Revocation, reason: string): Later<number> {
    return withAnswer(unfinished(which), (others) =>
      withAnswer(backend.removeAll(reason), ({ count, ids }) =>
        ended([...ids, ...others], reason, count + others.length),
      ),
    )
  }

  function grantsOf(which: Exclude<Revocation, { readonly all: true }>): Later<readonly string[]> {
    if ('grant' in which) return [which.grant]
    if ('grants' in which) return which.grants
    if ('token' in which)
      return withAnswer(backend.grantOf(which.token), (id) => (id === undefined ? [] : [id]))
    return withAnswer(backend.owners(), ({ grants, lost }) =>
      withAnswer(unfinished(which), (others) => {
        const theirs = grants.filter((grant) => isTheirs(which, grant)).map(({ id }) => id)
        // The backend does not know the owner of a lost grant, which is over in any case.
        return [...new Set([...theirs, ...others, ...lost])]
      }),
    )
  }

  /** The grants that a revocation covers and that only requests in flight still use. */
  function unfinished(which: Revocation): Later<readonly string[]> {
    return withAnswer(backend.describe([...grantsInFlight(live)]), (found) => {
      const ids = new Set(found.map(({ id }) => id))
      return unfinishedOf(which, live, (id) => ids.has(id))
    })
  }

  /** Reports revoked grants, and ends their requests in flight. Returns their number. */
  function ended(ids: readonly string[], reason: string, count = ids.length): number {
    if (count > 0) listener.revoked(count, reason, ids)
    if (ids.length > 0) live.cut(ids)
    return count
  }

  return {
    issue: (...login) => orUnavailable(issue(...login)),
    handOut: (...handout) => orUnavailable(handOut(...handout)),
    refresh: (presented) => orUnavailable(refresh(presented)),
    identify: backend.identify,
    revoke: (which, reason) => orUnavailable(revoke(which, reason)),
    grants: () => orUnavailable(backend.grants()),
    recentGrants: (most) => orUnavailable(backend.recentGrants(most)),
    owners: () => orUnavailable(withAnswer(backend.owners(), ({ grants }) => grants)),
    describe: (ids) => orUnavailable(backend.describe(ids)),
    counts: backend.counts,
    sweep: backend.sweep,
    applyPolicy(next) {
      policy = next
      backend.applyPolicy(next)
    },
  }
}

/** Resolves with `unavailable` if the backend does not answer. Every other rejection is a bug, and passes. */
function orUnavailable<T>(asked: Later<T>): Later<T | Unavailable> {
  if (!(asked instanceof Promise)) return asked
  return asked.catch((error: unknown) => {
    if (error instanceof BackendUnavailable) return 'unavailable'
    throw error
  })
}
