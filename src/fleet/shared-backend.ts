import type { Clock } from '../system/clock.ts'
import type { Backend } from '../tokens/backend.ts'
import {
  endOfGrant,
  type Lifetimes,
  lifetimeOf,
  MOST_ISSUED,
  mostLogins,
  type Spent,
  shareOf,
  surplusOf,
  type TokenKind,
  type TokenPolicy,
} from '../tokens/grant-rules.ts'
import type { GrantSummary } from '../tokens/grant-table.ts'
import { digestToken, type NewToken, type RandomBytes } from '../tokens/mint.ts'
import { MOST_LISTED, type TokenEvents } from '../tokens/state-events.ts'
import type { TokenCopies } from './copies.ts'
import { REVOKE_ALL } from './epoch.ts'
import { describeGrants, listAll, listGrants, listIssued, revokeAtServer } from './grants.ts'
import { sayRevoked } from './operator-words.ts'
import { READ_TOKEN, runScriptDurably, SET_GRANT } from './scripts.ts'
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
  readonly policy: TokenPolicy
  readonly clock: Clock
  readonly random: RandomBytes
  readonly listener: Pick<TokenEvents, 'evicted'>
  /** Whether the server has every revocation of a name by this sidecar. Sends those that it lacks. */
  readonly isSettled: () => Promise<boolean>
}

/** The letters of the kinds on the server. */
const LETTERS: Readonly<Record<TokenKind, string>> = { access: 'a', refresh: 'r' }

/** A change of one grant: see `SET_GRANT`. */
interface GrantChange {
  readonly what: 'login' | 'issued' | 'refresh'
  readonly epoch: string
  readonly grant: string
  readonly client: string
  /** The age of the login (ms). */
  readonly age: number
  readonly added: readonly NewToken[]
  readonly label?: string
  readonly most?: number
  /** The arguments of a refresh. */
  readonly refresh?: readonly (string | number)[]
  readonly dropped?: readonly string[]
}

/** `GrantChange.refresh` of a new grant. */
const NO_REFRESH = ['', '', '', '', '', '']

/**
 * The grants that several sidecars share. The server is authoritative: each change is one atomic step there. The copies of this sidecar
 * follow at once, the copies of the others within the delay of a message. The server evicts the grant that expires first.
 */
export function createSharedBackend(deps: Dependencies) {
  const { store, copies, clock, random, listener, isSettled } = deps
  let { policy } = deps
  const known = copies.epoch

  /** As every change, a read for a refresh waits for replicas: a former primary must neither change nor refuse a token. */
  const ask = (name: StoreOperation, { source }: Script, ...args: readonly (string | number)[]) =>
    runScriptDurably(store, { name, source }, ...args)

  /** Throws if the server has lost the epoch: it may have lost the token, too, so its answer proves nothing. */
  function requirePresent(operation: StoreOperation, epoch = ''): void {
    if (known.isBehind(epoch))
      throw new StoreUnavailable(operation, 'loading', 'the server has lost its state')
  }

  /**
   * Throws if the server may accept a token that is void: it may be a restored backup, or lack a revocation of a name by this sidecar, which
   * applies here at once.
   */
  async function requireSettled(): Promise<void> {
    if (copies.inStep && (known.owed.names.size === 0 || (await isSettled()))) return
    throw new StoreUnavailable('refresh', 'loading', 'the server and this sidecar have not agreed yet')
  }

  /** Reads a token of either kind, the time, and the epoch, empty if the server has none. */
  async function find(presented: string) {
    const digest = digestToken(presented)
    const most = shareOf(policy.capacity) - (policy.rotateRefresh ? 2 : 1)
    const reply = await ask('refresh', READ_TOKEN, digest, most, policy.accessLifetime)
    const [time, present, record, stored, over, ...members] = reply
    const [now, epoch] = [Number(time), String(present)]
    if (record === undefined) return { now, epoch, token: undefined }
    const [letter, grant = '', client = '', login, text = ''] = listOf(record).map(String)
    const granted = Math.min(Number(login), now)
    const kind: TokenKind = letter === 'a' ? 'access' : 'refresh'
    const dropped = surplusOf(oldestOf(members, policy), Number(over), LETTERS.refresh + digest)
    const retry = letter === 's' ? responseIn(String(stored), presented) : NOT_SPENT
    return { now, epoch, token: { kind, grant, client, granted, digest, text, dropped, ...retry } }
  }

  /** Sets the tokens of a grant, and keeps copies of the access tokens among them. */
  async function set(change: GrantChange) {
    const { what, epoch, grant, client, age, added, label, most = 0 } = change
    const { refresh = NO_REFRESH, dropped = [] } = change
    const asked = clock.monotonic()
    const tokens = added.flatMap((each) => [LETTERS[each.kind], each.digest, each.lifetime])
    const args = [what, epoch, grant, client, label ?? '', most, ...refresh, added.length]
    const name = what === 'refresh' ? what : 'issue'
    const reply = await ask(name, SET_GRANT, ...args, ...tokens, ...dropped)
    const [kind, at, accessTokens, refreshTokens, ...evicted] = reply
    if (kind !== 'set') return kind === 'full' ? kind : 'stale'
    if (evicted.length > 0) known.apply({ kind: 'evicted', grants: evicted.map(String) })
    if (Number(accessTokens) > 0) listener.evicted('access', Number(accessTokens))
    if (Number(refreshTokens) > 0) listener.evicted('refresh', Number(refreshTokens))
    for (const { kind, digest, lifetime } of added) {
      if (kind !== 'access') continue
      const handout = label === undefined ? undefined : { label, lifetime }
      copies.add({ digest, grant, client, epoch, age, until: asked + lifetime, handout })
    }
    return { at: Number(at) }
  }

  return {
    async read(presented) {
      await requireSettled()
      const { now, epoch, token } = await find(presented)
      requirePresent('refresh', epoch)
      if (token === undefined) return { now, token }
      const { digest, text, grant, client, granted, dropped } = token
      return {
        now,
        token: {
          ...token,
          async set({ added, spends }) {
            const response = spends === undefined ? '' : sealResponse(spends.response, presented, random)
            const end = endOfGrant(granted, policy)
            const ends = Number.isFinite(end) ? end : ''
            const refresh = [digest, text, response, spends?.grace ?? 0, granted, ends]
            const grown = { grant, client, epoch, age: now - granted, added }
            if ((await set({ ...grown, what: 'refresh', refresh, dropped })) === 'stale') return false
            copies.use(grant)
            return true
          },
        },
      }
    },
    open({ id, client, epoch, added, label }) {
      const change = { grant: id, client, epoch, age: 0, added }
      return label === undefined
        ? set({ ...change, what: 'login', most: mostLogins(policy.capacity) })
        : set({ ...change, what: 'issued', most: policy.issued ?? MOST_ISSUED, label })
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
      // Only the log needs the list: the new epoch voids all grants, listed or not.
      const listed = await listGrants(store, copies, MOST_LISTED).catch(unlisted)
      const [count, epoch = ''] = (await ask('revoke', REVOKE_ALL, Number(known.present))).map(String)
      requirePresent('revoke', epoch)
      known.apply({ kind: 'begun', epoch })
      return { count: Number(count), ids: listed.grants.map(({ id }) => id) }
    },
    async grantOf(token) {
      // A copy saves a question, and the server may have lost the token.
      const digest = digestToken(token)
      const copied = copies.grantOf(digest)
      if (copied !== undefined) return copied
      const [, epoch, record] = await ask('revoke', READ_TOKEN, digest)
      if (record === undefined) requirePresent('revoke', String(epoch))
      const [, grant] = listOf(record)
      return grant === undefined ? undefined : String(grant)
    },
    use: copies.use,
    identify: copies.identify,
    grants: async () => (await listAll(store, copies)).grants,
    async owners() {
      const { epoch, ...listed } = await listAll(store, copies)
      requirePresent('revoke', epoch)
      return listed
    },
    recentGrants: (most) => listGrants(store, copies, most),
    describe: (ids) => describeGrants(store, copies, ids),
    issued: () => listIssued(store, copies),
    counts: copies.counts,
    sweep: copies.sweep,
    /** The present policy. */
    get policy(): TokenPolicy {
      return policy
    },
    applyPolicy(next) {
      policy = next
      copies.applyPolicy(next)
    },
  } satisfies Backend & Record<string, unknown>
}

function unlisted(error: unknown): { readonly grants: readonly GrantSummary[] } {
  if (error instanceof StoreUnavailable) return { grants: [] }
  throw error
}

/**
 * The server has lost the response, and with it the time when the token was spent: its use is reuse. So a token that is exchanged here is
 * always the live refresh token of its grant.
 */
const LONG_AGO: Spent = { at: Number.NEGATIVE_INFINITY, graceEnd: Number.NEGATIVE_INFINITY }

const NOT_SPENT = { response: undefined, spent: undefined }

/** The stored response for a retry, and when the token was spent. A response that was changed in the store is as lost. */
function responseIn(stored: string, presented: string) {
  const [, at, graceEnd, sealed = ''] = /^(\d+) (\d+) (.+)$/.exec(stored) ?? []
  const response = openResponse(sealed, presented)
  return {
    response,
    spent: response === undefined ? LONG_AGO : { at: Number(at), graceEnd: Number(graceEnd) },
  }
}

/** The oldest members first. A refresh token in its last hour may be missing. */
function oldestOf(lists: readonly StoreReply[], lifetimes: Lifetimes): readonly string[] {
  const issued = new Map<string, number>()
  for (const list of lists.map(listOf))
    for (let at = 0; at < list.length; at += 2) {
      const [member, end] = [String(list[at]), Number(list[at + 1])]
      issued.set(
        member,
        end - lifetimeOf(member.startsWith(LETTERS.access) ? 'access' : 'refresh', lifetimes),
      )
    }
  const ages = [...issued].sort(([, one], [, other]) => one - other)
  return ages.map(([member]) => member)
}
