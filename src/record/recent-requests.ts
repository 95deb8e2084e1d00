import type { Exchange } from '../http/exchange.ts'
import { type Explanation, explain, type RequestRow, summaryOf } from './explanation.ts'
import { factsIn, type RequestFacts, requestRow, startOf } from './request-facts.ts'

export type RecentRequests = ReturnType<typeof createRecentRequests>

export interface Remembered {
  readonly what: 'answered' | 'failed' | 'rate-limited' | 'refused'
  readonly requests: number
  /** When the oldest of them arrived (ms since the Unix epoch); null without any. */
  readonly since: number | null
}

/** Selects remembered requests. Without reason and status: requests of every reason. */
export interface Wanted {
  /** The kind of a refusal or its detail, such as `rate-limited`, `upstream` or `connection_refused`. `_` and `-` are equal. */
  readonly reason?: string | undefined
  /** A status, or its class: `500`, `5xx`. */
  readonly status?: string | undefined
}

/** The most requests of each kind that are remembered. Each kind has its own ring, so a flood of one does not displace the others. */
const ANSWERED = 800
const FAILED = 400
const LIMITED = 400
const REFUSED = 400

/**
 * The memory reaches back at least this many seconds, and a flood costs almost nothing: of each kind, only the first requests of a second
 * are remembered, up to this part of its ring (`capacity / SECONDS`).
 */
const SECONDS = 5

/** The length of a list. */
const ROWS = 100

/**
 * Remembers the last requests, to explain a decision afterwards: in at most 1 MiB, whatever clients send. Each request is stored as a new
 * string: a substring of a request head would keep the whole head, and the token in it, in memory (V8's sliced strings).
 *
 * @param issued the live issued grants, whose labels the explanations name
 */
export function createRecentRequests(
  issued: () => readonly { readonly id: string; readonly label: string }[] = () => [],
) {
  const answered = createRing('answered', ANSWERED)
  const failed = createRing('failed', FAILED)
  const limited = createRing('rate-limited', LIMITED)
  const refused = createRing('refused', REFUSED)
  const rings = [answered, failed, limited, refused]

  return {
    /** @param wall when it has ended (ms since the Unix epoch) */
    add(exchange: Exchange, wall: number): void {
      const { status, failure, refusal } = exchange
      const isFailed = status >= 500 || failure !== undefined
      const ofRefusals = refusal?.kind === 'rate-limited' ? limited : refused
      const ring = isFailed ? failed : refusal === undefined ? answered : ofRefusals
      ring.add(exchange, wall)
    },
    /** At most `ROWS` requests, the latest first: the selected ones, or without a selection about equally many of each reason. */
    recent({ reason, status }: Wanted = {}): readonly RequestRow[] {
      if (reason !== undefined || status !== undefined) {
        const isWanted = (row: RequestRow): boolean => hasReason(row, reason) && hasStatus(row, status)
        const all = latestFirst(rings.flatMap((ring) => ring.rows()))
        return all.map(summaryOf).filter(isWanted).slice(0, ROWS)
      }
      const latest = latestFirst(rings.flatMap((ring) => ring.rows().slice(0, ROWS)))
      return withRoomForEach(latest).map(summaryOf)
    },
    /** Explains the requests with this id, the latest first. (A trusted proxy may send an id twice.) */
    explain(id: string): readonly Explanation[] {
      const isFound = (row: string): boolean => row.startsWith(startOf(id))
      const found = latestFirst(rings.flatMap((ring) => ring.rows().filter(isFound)))
      const grants = found.length === 0 ? [] : issued()
      const labelOf = (grant: string): string | undefined => grants.find((each) => each.id === grant)?.label
      return found.map((facts) => explain(facts, labelOf(facts.grant)))
    },
    remembered: (): readonly Remembered[] => rings.map((ring) => ring.remembered()),
  }
}

function latestFirst(rows: readonly string[]): RequestFacts[] {
  return rows.map(factsIn).sort((a, b) => b.time - a.time)
}

/** Chooses rows: the latest of each reason, then the second of each, and so on. Takes and returns the latest first. */
function withRoomForEach(rows: readonly RequestFacts[]): readonly RequestFacts[] {
  const seen = new Map<string, number>()
  const ranked = rows.map((row) => {
    const isFailed = row.status >= 500 || row.failure !== ''
    const reason = row.refusal === '' && isFailed ? 'failed' : row.refusal
    const rank = seen.get(reason) ?? 0
    seen.set(reason, rank + 1)
    return { row, rank }
  })
  // The sort is stable, so the latest row comes first among those of the same rank.
  const chosen = new Set(ranked.toSorted((a, b) => a.rank - b.rank).slice(0, ROWS))
  return ranked.filter((each) => chosen.has(each)).map(({ row }) => row)
}

function hasReason({ refusal }: RequestRow, wanted: string | undefined): boolean {
  if (wanted === undefined) return true
  const named = (text: string): string => text.trim().toLowerCase().replaceAll('_', '-')
  const [kind = '', detail = ''] = (refusal ?? '').split(':')
  return [refusal ?? '', kind, detail].some((text) => text !== '' && named(text) === named(wanted))
}

function hasStatus({ status }: RequestRow, wanted: string | undefined): boolean {
  if (wanted === undefined) return true
  return wanted.endsWith('xx') ? String(status)[0] === wanted[0] : String(status) === wanted
}

/** The last requests of one kind. A new one takes the place of the oldest. */
function createRing(what: Remembered['what'], capacity: number) {
  const kept: string[] = []
  let next = 0
  /** The beginning of the second in which requests are counted (wall clock, ms). A clock that is set back begins a new one. */
  let secondFrom = Number.NEGATIVE_INFINITY
  let inSecond = 0

  /** All rows, the latest first. */
  const rows = (): readonly string[] => [...kept.slice(next), ...kept.slice(0, next)].reverse()

  return {
    rows,
    /** Remembers a request that has ended, unless there were too many in this second. */
    add(exchange: Exchange, wall: number): void {
      if (wall >= secondFrom + 1000 || wall < secondFrom) {
        secondFrom = wall
        inSecond = 0
      }
      inSecond += 1
      if (inSecond > capacity / SECONDS) return
      kept[next] = requestRow(exchange, wall)
      next = (next + 1) % capacity
    },
    remembered(): Remembered {
      const oldest = rows().at(-1)
      return { what, requests: kept.length, since: oldest === undefined ? null : factsIn(oldest).time }
    },
  }
}
