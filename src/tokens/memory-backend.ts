import { type Clock, createWallOffset, nextTurn } from '../system/clock.ts'
import type { Backend, Exchange, Now } from './backend.ts'
import { classifySpent, MOST_ISSUED, type TokenPolicy } from './grant-rules.ts'
import { type Grant, type GrantSummary, type GrantTable, summarize, type Token } from './grant-table.ts'
import type { TokenJournal } from './journal.ts'
import { createLookUp, REFUSED } from './look-up.ts'
import { digestToken, type IssuedTokens, type NewToken } from './mint.ts'
import { grantsInFlight, type LiveRequests, PASSWORD_CHANGED } from './revocation.ts'
import type { TokenEvents } from './state-events.ts'

/** The most revoked grants that one turn of the event loop removes: 100,000 at once would block the loop for most of a second. */
const REMOVED_PER_TURN = 500

interface Dependencies {
  readonly clock: Clock
  /** Undefined for `tokens.store: memory`: a restart forgets every token. */
  readonly journal: TokenJournal | undefined
  /** Contains the tokens that the journal has restored. */
  readonly table: GrantTable
  readonly listener: Pick<TokenEvents, 'evicted'>
  readonly live: LiveRequests
  /** Must have the capacity with which the table was created. */
  readonly policy: TokenPolicy
}

export type MemoryBackend = ReturnType<typeof createMemoryBackend>

/**
 * The grants in the memory of this process. Memory is authoritative, and the journal follows it. It evicts the grant that was used least
 * recently; a request in flight is a use.
 */
export function createMemoryBackend(deps: Dependencies) {
  const { clock, journal, table, listener, live } = deps
  let { policy } = deps
  const wallOffset = createWallOffset(clock)
  /**
   * Token responses that a retry within the grace gets again. Only this map holds tokens in plain text, and entries are removed after
   * the grace.
   */
  const responses = new Map<Token, IssuedTokens>()
  let removing: Promise<void> = Promise.resolve()
  let closed = false

  /** Removes expired tokens, and responses whose grace is over. Returns the time in whole ms. */
  function expire(): number {
    if (journal?.followClock()) limit()
    const now = Math.floor(clock.monotonic())
    for (const token of responses.keys()) {
      if (token.spent !== undefined && classifySpent(token.spent, now, policy.refreshGrace) === 'retry') break
      responses.delete(token)
    }
    const expired = table.expire(now)
    if (expired.length > 0) journal?.forget(expired)
    return now
  }

  /** Lets no token outlive its login. The journal records that, so a restart under a later policy does not prolong a token. */
  function limit(): void {
    const limited = table.limit(policy)
    if (limited.length > 0) journal?.record(limited)
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
      const count = evicted.filter(
        (token) => token.kind === kind && token.spent === undefined && !token.grant.revoked,
      ).length
      if (count > 0) listener.evicted(kind, count)
    }
  }

  /**
   * Adds tokens to a grant, and writes them and the token that was spent for them to disk. The response is sent after that, so a crash
   * cannot invalidate tokens that a client has.
   */
  function add(grant: Grant, added: readonly NewToken[], now: number, spent?: Token): void {
    const changed = spent === undefined ? [] : [spent]
    for (const { kind, digest, lifetime } of added)
      changed.push(table.add(grant, kind, digest, now, now + lifetime))
    makeRoom(grant)
    journal?.record(changed.filter((token) => !token.removed))
  }

  function change(token: Token, { added, spends }: Exchange, now: number): void {
    const { grant } = token
    if (table.isFull) touchInFlight(now)
    table.touch(grant, now)
    if (spends === undefined) {
      add(grant, added, now)
      return
    }
    const { response, grace } = spends
    const spent = grant.refresh
    if (spent !== undefined) {
      table.spend(spent, { at: now, graceEnd: now + grace })
      responses.set(spent, response)
    }
    // The presented token may have been spent before: then its response was lost.
    responses.set(token, response)
    add(grant, added, now, spent)
  }

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

  /**
   * Revokes grants: their tokens are refused at once, and deleted durably. Many grants are removed over several turns of the event loop, but
   * only where a stop in between cannot bring a token back: with `all`, the journal forgets every token in one step; after a change of the
   * password, the next start revokes the rest.
   *
   * @param all also deletes stored tokens that this process never loaded
   */
  function revoke(grants: readonly Grant[], all: boolean, reason: string): readonly string[] {
    const tokens = grants.map((grant) => grant.tokens)
    const spread = (all || reason === PASSWORD_CHANGED) && grants.length > REMOVED_PER_TURN
    // The table comes before the journal: if the journal has to recreate its file, it writes the tokens that the table has.
    if (spread) table.revoke(grants)
    else drop(tokens.flat())
    if (all) journal?.revoke('all')
    else if (!spread && tokens.length > 0) journal?.revoke(tokens.flat())
    if (spread) removing = removing.then(() => dropInTurns(tokens, !all))
    return grants.map(({ id }) => id)
  }

  function summaries(grants: Iterable<Grant>): readonly GrantSummary[] {
    const ahead = wallOffset()
    return Array.from(grants, (grant) => summarize(grant, ahead))
  }

  const found = (ids: readonly string[]): readonly Grant[] =>
    ids.map(table.grant).filter((grant) => grant !== undefined)

  /** Whether a grant has no usable token left. A spent refresh token is not usable. */
  function isOver(id: string): boolean {
    return table.grant(id)?.tokens.some(({ spent }) => spent === undefined) !== true
  }

  return {
    read(presented) {
      const now = expire()
      const token = table.find(digestToken(presented))
      if (token === undefined) return { now, token }
      const { kind, spent, grant } = token
      return {
        now,
        token: {
          kind,
          spent,
          grant: grant.id,
          granted: grant.issuedAt,
          response: responses.get(token),
          set(exchange) {
            if (table.find(token.digest) !== token || token.spent !== spent) return false
            change(token, exchange, now)
            return true
          },
        },
      }
    },
    open({ id, client, label, added }) {
      const now = expire()
      if (label !== undefined && table.issued().length >= (policy.issued ?? MOST_ISSUED)) return 'full'
      if (table.isFull) touchInFlight(now)
      add(table.open(id, client, now, label), added, now)
      return { at: wallOffset() + now }
    },
    remove(ids, reason) {
      expire()
      return revoke(found(ids), false, reason)
    },
    removeAll(reason) {
      expire()
      const ids = revoke([...table.grants()], true, reason)
      return { count: ids.length, ids }
    },
    grantOf(token) {
      expire()
      return table.find(digestToken(token))?.grant.id
    },
    use(id) {
      const grant = table.grant(id)
      if (grant !== undefined) table.touch(grant, clock.monotonic())
    },
    identify: createLookUp({ table, until: Number.POSITIVE_INFINITY }, clock, () => REFUSED.unknown),
    grants() {
      expire()
      return summaries(table.grants())
    },
    owners() {
      expire()
      return { grants: [...table.grants()], lost: [] }
    },
    recentGrants(most) {
      expire()
      return { total: table.grantCount, grants: summaries(table.recent(most)) }
    },
    describe(ids) {
      expire()
      return summaries(found(ids))
    },
    issued() {
      expire()
      return summaries(table.issued())
    },
    counts() {
      expire()
      return table.counts()
    },
    sweep() {
      const now = expire()
      touchInFlight(now)
      live.endStreams(now, isOver)
      journal?.maintain()
    },
    applyPolicy(next) {
      policy = next
      // Before `limit` writes times.
      journal?.followClock()
      limit()
      const now = expire()
      table.resize(next.capacity)
      if (table.isFull) touchInFlight(now)
      makeRoom()
    },
    /** Resolves when every token that a changed password revoked has left the file. */
    removed: (): Promise<void> => removing,
    /** Stops the removal of tokens. For a changed password, the former fingerprint in the file revokes the rest at the next start. */
    close(): void {
      closed = true
    },
  } satisfies Now<Backend> & Record<string, unknown>
}
