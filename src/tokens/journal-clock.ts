import type { Clock } from '../system/clock.ts'
import type { Uptime } from '../system/clock-steps.ts'
import { createLastingClock } from '../system/lasting-clock.ts'
import { lifetimeOf, type TokenPolicy } from './grant-rules.ts'
import type { GrantTable, Token } from './grant-table.ts'
import type { JournalFile } from './journal-file.ts'
import {
  type JournalListener,
  latestOf,
  mostLeftOf,
  restoreGrants,
  type TokenRecord,
} from './journal-records.ts'
import type { Digest } from './mint.ts'

/** The key of the last known time. After a restart, the time of the journal is never earlier. */
const TIME = 'time'
/** How often it is written while tokens live (ms), because each write wears the flash. */
const TIME_EVERY = 3_600_000
/**
 * A wall clock that is further behind the last known time than this (ms) has lost the time. The journal then writes a known time that lies
 * this far ahead, and writes the next one when that is reached. So tokens age even on a board that starts in 1970 each time and loses its
 * power after seconds (C7).
 */
const LEAD = 600_000

interface Dependencies {
  readonly clock: Clock
  readonly uptime: Uptime | undefined
  readonly listener: Pick<JournalListener, 'clock'>
  /** An empty table, which gets the tokens of the file. */
  readonly table: GrantTable
  readonly policy: TokenPolicy
  /** The tokens of the file. */
  readonly stored: readonly TokenRecord[]
  /** The facts about the whole state. One of them is the last known time. */
  readonly meta: Map<string, string>
}

/**
 * Maps monotonic time to the wall times in the token file. Only the wall clock tells the age of a restored token, so a step of the clock
 * recomputes when the restored tokens expire.
 */
export function createJournalClock(deps: Dependencies) {
  const { clock, uptime, listener, table, policy, stored, meta } = deps
  /** The last known time that is in the file; 0 if there is none. */
  let known = Number(meta.get(TIME)) || 0
  const floor = stored.length === 0 ? 0 : Math.max(known, latestOf(stored))
  const time = createLastingClock(clock, floor, uptime)
  let restoredAhead = time.ahead()
  const restoredAt = Math.floor(clock.monotonic())
  /** The live tokens of the file. */
  let restored: readonly Token[] = []
  if (time.behind() > 0) listener.clock('behind', time.behind())

  /** How long the tokens of issued grants were valid from their issue on (ms), by digest. */
  const lasting = new Map<Digest, number>()
  for (const record of stored)
    if (record.label !== null) lasting.set(record.digest, mostLeftOf(record, policy))

  /** The upper bound for the end of a restored token. No later step of the clock moves the end beyond it. */
  const latestEnd = ({ kind, digest }: Token): number =>
    restoredAt + (lasting.get(digest) ?? lifetimeOf(kind, policy))
  const present = (): number => Math.round(clock.monotonic() + time.ahead())
  const lead = (): number => (time.behind() > LEAD ? LEAD : 0)

  return {
    /**
     * Fills the table with the tokens of the file. `changed`: tokens whose records must be written again, because their grant got a name or
     * their login ends earlier. `over`: tokens that have expired or do not fit.
     *
     * @param heir the name for grants without a name; empty: they stay without one
     */
    restore(
      records: readonly TokenRecord[],
      heir: string,
    ): { readonly changed: readonly Token[]; readonly over: readonly Digest[] } {
      const { areRenamed, limited, over } = restoreGrants(table, records, clock, restoredAhead, policy, heir)
      restored = tokensOf(table)
      return { changed: areRenamed ? restored : restored.filter((token) => limited.has(token)), over }
    },
    /** Whether the wall clock has lost the time. */
    isLost: (): boolean => lead() > 0,
    /** The records of tokens for the file. */
    *toRecords(tokens: Iterable<Token>): Generator<TokenRecord, void> {
      const ahead = time.ahead()
      for (const token of tokens) {
        const { digest, grant, kind, spent } = token
        yield {
          digest,
          grant: grant.id,
          client: grant.client,
          granted: Math.round(ahead + grant.issuedAt),
          kind,
          issued: Math.round(ahead + token.issuedAt),
          expires: Math.round(ahead + token.expiresAt),
          spent: spent === undefined ? null : Math.round(ahead + spent.at),
          graceEnd: spent === undefined ? null : Math.round(ahead + spent.graceEnd),
          label: grant.label ?? null,
        }
      }
    },
    /** Whether the last known time has to be written again. */
    isDue(): boolean {
      const now = present()
      return now >= known + (lead() > 0 ? 0 : TIME_EVERY) || known > now + LEAD
    },
    /** Writes the last known time. `isLast`: the process stops in order, so the time needs no lead. */
    keep(file: Pick<JournalFile, 'setMeta'>, isLast = false): void {
      known = present() + (isLast ? 0 : lead())
      meta.set(TIME, String(known))
      file.setMeta(TIME, String(known))
    },
    /**
     * Checks whether the wall clock was set since the last call; undefined if not, or if the clock has lost the time. After a step it
     * recomputes the expiry of restored tokens, and returns the tokens of this run, and those that this run has spent: their records must be
     * written again with the corrected times.
     */
    follow(): readonly Token[] | undefined {
      const step = time.look()
      if (step === 'none') return undefined
      if (step === 'lost') {
        listener.clock('behind', time.behind())
        return undefined
      }
      const ahead = time.ahead()
      listener.clock('set', ahead - restoredAhead)
      restored = step === 'shift' ? [] : restored.filter((token) => !token.removed)
      table.retime(restored, Math.round(restoredAhead - ahead), latestEnd, restoredAt)
      restoredAhead = ahead
      const theirs = new Set(restored)
      const isSpentSince = ({ spent }: Token): boolean => spent !== undefined && spent.at >= restoredAt
      return tokensOf(table).filter((token) => !theirs.has(token) || isSpentSince(token))
    },
  }
}

function tokensOf(table: GrantTable): readonly Token[] {
  return [...table.grants().flatMap((grant) => grant.tokens)]
}
