import type { Clock } from '../system/clock.ts'
import { spentMeans } from './grant-rules.ts'
import type { Grant, GrantTable, Token } from './grant-table.ts'
import type { TokenJournal } from './journal.ts'
import type { NewToken } from './mint.ts'
import { grantsInFlight, type IssuedTokens, type LiveRequests, type TokenEvents } from './state.ts'

export interface LocalRecordsDependencies {
  readonly clock: Clock
  /** Undefined for `tokens.store: memory`: a restart forgets every token. */
  readonly journal: TokenJournal | undefined
  /** With the tokens that the journal has restored. */
  readonly table: GrantTable
  readonly listener: TokenEvents
  readonly live: LiveRequests
}

/** The tokens of this process as records: in memory, which is authoritative; the journal follows. */
export function createLocalRecords({ clock, journal, table, listener, live }: LocalRecordsDependencies) {
  /**
   * Token responses that a retry within the grace gets again. No other structure holds tokens in plain text, and these are removed
   * after the grace.
   */
  const responses = new Map<Token, IssuedTokens>()

  function makeRoom(grown?: Grant): void {
    const evicted = table.evict(grown)
    if (evicted.length === 0) return
    journal?.forget(evicted)
    for (const kind of ['access', 'refresh'] as const) {
      const count = evicted.filter((token) => token.kind === kind && token.spent === undefined).length
      if (count > 0) listener.evicted(kind, count)
    }
  }

  return {
    /**
     * Removes expired tokens, and responses whose grace is over. Returns the time in whole ms.
     *
     * @param grace `refresh_grace` (ms)
     */
    expire(grace: number): number {
      journal?.followClock()
      const now = Math.floor(clock.monotonic())
      for (const token of responses.keys()) {
        if (token.spent !== undefined && spentMeans(token.spent, now, grace) === 'retry') break
        responses.delete(token)
      }
      const expired = table.expire(now)
      if (expired.length > 0) journal?.forget(expired)
      return now
    },
    /** A request in flight is a use: the grant of a stream that is quiet for hours is not evicted first. */
    touchInFlight(now: number): void {
      for (const id of grantsInFlight(live)) {
        const grant = table.grant(id)
        if (grant !== undefined) table.touch(grant, now)
      }
    },
    makeRoom,
    /**
     * Adds tokens to a grant, and writes them to disk with those that were spent for them. The response is sent after that: a crash
     * cannot invalidate tokens that a client has.
     */
    add(grant: Grant, added: readonly NewToken[], now: number, spent?: Token): void {
      const changed = spent === undefined ? [] : [spent]
      for (const { kind, digest, lifetime } of added)
        changed.push(table.add(grant, kind, digest, now, now + lifetime))
      makeRoom(grant)
      journal?.record(changed.filter((token) => !token.removed))
    },
    /** Keeps the response for a retry with this token. */
    keepResponse(token: Token, response: IssuedTokens): void {
      responses.set(token, response)
    },
    responseTo: (token: Token): IssuedTokens | undefined => responses.get(token),
    /** Deletes the tokens of grants, durably. `all`: also stored ones that this process never loaded. */
    revoke(grants: readonly string[], all: boolean): void {
      const tokens = grants.flatMap((id) => table.grant(id)?.tokens ?? [])
      for (const token of tokens) {
        table.drop(token, 'revoked')
        responses.delete(token)
      }
      if (all) journal?.revoke('all')
      else if (tokens.length > 0) journal?.revoke(tokens)
    },
  }
}
