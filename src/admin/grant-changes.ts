import type { PageEvents } from '../overview/model.ts'
import type { GrantRows } from '../overview/overview.ts'

/** The rows at one time, as JSON by id. It never changes, so several streams share one. */
export interface GrantSnapshot {
  /** Null: the shared store did not say. The rows are then those before. */
  readonly total: number | null
  readonly rows: ReadonlyMap<string, string>
}

export function snapshotOf(
  grants: GrantRows | 'unavailable',
  before: GrantSnapshot | undefined,
): GrantSnapshot {
  if (grants === 'unavailable') return { total: null, rows: before?.rows ?? new Map() }
  const rows = grants.rows.map((row) => [row.id, JSON.stringify(row)] as const)
  return { total: grants.total, rows: new Map(rows) }
}

/** The data of a `grants` event (JSON) for a stream that has `before`; undefined if nothing has changed. */
export function grantChanges(before: GrantSnapshot | undefined, now: GrantSnapshot): string | undefined {
  if (before === now) return undefined
  const known: ReadonlyMap<string, string> = before?.rows ?? new Map()
  const changed = [...now.rows].flatMap(([id, row]) => (known.get(id) === row ? [] : [row]))
  const removed = [...known.keys()].filter((id) => !now.rows.has(id))
  if (before?.total === now.total && changed.length + removed.length === 0) return undefined
  const rest: Omit<PageEvents['grants'], 'changed'> = { total: now.total, removed }
  // The rows are JSON already.
  return `{"changed":[${changed.join()}],${JSON.stringify(rest).slice(1)}`
}
