import type { UsedUpWindow } from '../limits/window-table.ts'
import type { Clock } from '../system/clock.ts'
import type { RecentGrants } from '../tokens/grant-table.ts'
import type { Tokens } from '../tokens/token-store.ts'
import { type GrantSearch, grantRow } from './grant-search.ts'
import type { About, Condition, GrantRow, LimitCondition, Point, TimelineEntry } from './model.ts'

/** The sources of the live page. */
export interface Overview {
  readonly about: About
  /** The points later than `after`, oldest first. */
  points(after: number): readonly Point[]
  condition(): Condition
  /** The entries with an id above `after`, oldest first. */
  timeline(after: number): readonly TimelineEntry[]
  grants(): GrantRows | 'unavailable' | Promise<GrantRows | 'unavailable'>
  findGrants: GrantSearch
  /** Calls the listener once a second, with each new point. */
  onPoint(listener: (point: Point) => void): { close(): void }
}

export interface GrantRows {
  readonly total: number
  readonly rows: readonly GrantRow[]
}

/** The most grants that the page gets: more would be slow in a browser and long on the wire. */
const MOST_ROWS = 1_000

/** How long the grants of a shared store are shown before it is asked again (ms): each list costs the server time. */
const ASK_EVERY = 10_000

/** The most used-up windows of a limit that the page gets. */
const MOST_WINDOWS = 100

/** Creates `Overview.grants`. A shared store is asked at most every ten seconds, whatever it answers. */
export function createGrantRows(tokens: Pick<Tokens, 'recentGrants'>, clock: Clock): Overview['grants'] {
  let asked: { readonly at: number; readonly rows: Promise<GrantRows | 'unavailable'> } | undefined

  return () => {
    const now = clock.monotonic()
    if (asked !== undefined && now - asked.at < ASK_EVERY) return asked.rows
    const found = tokens.recentGrants(MOST_ROWS)
    if (!(found instanceof Promise)) return found === 'unavailable' ? found : rowsOf(found)
    asked = { at: now, rows: found.then((grants) => (grants === 'unavailable' ? grants : rowsOf(grants))) }
    return asked.rows
  }
}

/** The rows, the most recently used first. A login is a use. */
function rowsOf({ total, grants }: RecentGrants): GrantRows {
  const rows = grants.map(grantRow).sort((a, b) => (b.usedAt ?? b.issuedAt) - (a.usedAt ?? a.issuedAt))
  return { total, rows }
}

/**
 * A limit with its used-up windows, as the page shows them: those with the most refused requests first.
 *
 * @param usedUp the used-up windows that are open
 * @param ahead how far the wall clock is ahead of the monotonic one (ms)
 */
export function limitCondition(
  { requests, window, per, names }: Omit<LimitCondition, 'usedUp' | 'usedUpCount'>,
  usedUp: readonly UsedUpWindow[],
  ahead: number,
): LimitCondition {
  const shown = usedUp
    .toSorted((a, b) => b.refused - a.refused)
    .slice(0, MOST_WINDOWS)
    .map(({ key, closesAt, refused }) => ({ key, until: Math.ceil(closesAt + ahead), refused }))
  return { requests, window, per, names, usedUp: shown, usedUpCount: usedUp.length }
}
