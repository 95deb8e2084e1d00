import type { Exchange } from '../http/exchange.ts'
import type { Clock } from '../system/clock.ts'
import { type Explanation, explain, type RequestRow, summaryOf } from './explanation.ts'
import { factsIn, type RequestFacts, rowOf, startOf } from './request-facts.ts'

export type RecentRequests = ReturnType<typeof createRecentRequests>

export interface Remembered {
  readonly what: 'answered' | 'rate-limited' | 'refused'
  readonly requests: number
  /** When the oldest of them arrived (ms since the Unix epoch); null if there is none. */
  readonly since: number | null
}

/** How many requests are remembered. Refused ones are kept apart, so that a flood of them leaves the others. */
const ANSWERED = 1000
const LIMITED = 500
const REFUSED = 500

/**
 * What is remembered reaches back at least so many seconds, and a flood costs almost nothing: of each kind, only the first requests
 * of each second are remembered, up to this part of its places.
 */
const SECONDS = 5

const ROWS = 50

/**
 * Remembers the last requests, to explain a decision afterwards: in 1 MiB at most, whatever clients send. A request is one text of its own:
 * a string that V8 cut out of a request head would keep the whole head, and the token in it, in memory.
 *
 * @param issued the live issued grants, whose labels the explanations name
 */
export function createRecentRequests(
  clock: Clock,
  issued: () => readonly { readonly id: string; readonly label: string }[] = () => [],
) {
  const answered = createRing('answered', ANSWERED)
  const limited = createRing('rate-limited', LIMITED)
  const refused = createRing('refused', REFUSED)
  const rings = [answered, limited, refused]

  return {
    add(exchange: Exchange): void {
      const { refusal } = exchange
      const ring = refusal === undefined ? answered : refusal.kind === 'rate-limited' ? limited : refused
      ring.add(exchange, clock.wall())
    },
    /** The latest first: at most 50 that were refused, and 50 others. */
    recent(): readonly RequestRow[] {
      const rows = latestFirst(rings.flatMap((ring) => ring.rows().slice(0, 2 * ROWS))).map(summaryOf)
      const left = { refused: ROWS, others: ROWS }
      return rows.filter(({ refusal }) => left[refusal === null ? 'others' : 'refused']-- > 0)
    },
    /** What was decided about the requests with this id, the latest first. (A trusted proxy may send an id twice.) */
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

/** The last requests of one kind. A new one takes the place of the oldest. */
function createRing(what: Remembered['what'], capacity: number) {
  const kept: string[] = []
  let next = 0
  /** The second in which requests are counted began at this time (ms on the monotonic clock). */
  let secondFrom = Number.NEGATIVE_INFINITY
  let inSecond = 0

  /** The latest first. */
  const rows = (): readonly string[] => [...kept.slice(next), ...kept.slice(0, next)].reverse()

  return {
    rows,
    /** Remembers a request that has ended, unless it is one of too many in a second. */
    add(exchange: Exchange, wall: number): void {
      const now = exchange.start + exchange.duration
      if (now >= secondFrom + 1000) {
        secondFrom = now
        inSecond = 0
      }
      inSecond += 1
      if (inSecond > capacity / SECONDS) return
      kept[next] = rowOf(exchange, wall)
      next = (next + 1) % capacity
    },
    remembered(): Remembered {
      const oldest = rows().at(-1)
      return { what, requests: kept.length, since: oldest === undefined ? null : factsIn(oldest).time }
    },
  }
}
