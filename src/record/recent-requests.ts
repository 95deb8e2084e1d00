import type { Exchange } from '../http/exchange.ts'
import type { Clock } from '../system/clock.ts'
import { type Explanation, explain, type RequestRow, rowOf } from './explanation.ts'
import { factsOf, type RequestFacts } from './request-facts.ts'

/** The last requests, to explain a decision afterwards. */
export interface RecentRequests {
  add(exchange: Exchange): void
  /** The latest first: at most 50 that were refused, and 50 others. */
  recent(): readonly RequestRow[]
  /** What was decided about the requests with this id, the latest first. (A trusted proxy may send an id twice.) */
  explain(id: string): readonly Explanation[]
  remembered(): readonly Remembered[]
}

export interface Remembered {
  readonly what: 'answered' | 'rate-limited' | 'refused'
  readonly requests: number
  /** When the oldest of them arrived (ms since the epoch); null if there is none. */
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

/** The space for a request (bytes). What is longer loses the end of its path. */
const ROW = 512

const ROWS = 50

/**
 * Remembers requests in 1 MiB at most, whatever clients send. Each is written as JSON into bytes that are allocated once: a string
 * that V8 cut out of a request head would keep the whole head, and the token in it, in memory.
 */
export function createRecentRequests(clock: Clock): RecentRequests {
  const answered = new Ring('answered', ANSWERED)
  const limited = new Ring('rate-limited', LIMITED)
  const refused = new Ring('refused', REFUSED)
  const rings = [answered, limited, refused]

  return {
    add(exchange) {
      const { refusal } = exchange
      const ring = refusal === undefined ? answered : refusal.kind === 'rate-limited' ? limited : refused
      ring.add(exchange, clock.wall())
    },
    recent() {
      const rows = latestFirst(rings.flatMap((ring) => ring.last(2 * ROWS))).map(rowOf)
      const left = { refused: ROWS, others: ROWS }
      return rows.filter(({ refusal }) => left[refusal === null ? 'others' : 'refused']-- > 0)
    },
    explain: (id) => latestFirst(rings.flatMap((ring) => ring.find(id))).map(explain),
    remembered: () => rings.map((ring) => ring.remembered()),
  }
}

/** Times to the microsecond, and words in visible ASCII, so that a request cannot send control sequences to a terminal. */
function rowText(facts: RequestFacts): string {
  const values = Object.values(facts).map((value) => {
    if (typeof value === 'number') return Math.round(value * 1000) / 1000
    return typeof value === 'string' ? value.replace(/[^ -~]/g, '?') : value
  })
  return JSON.stringify(values)
}

function latestFirst(facts: readonly RequestFacts[]): RequestFacts[] {
  return facts.toSorted((a, b) => b.time - a.time)
}

/** The last requests of one kind. A new one takes the place of the oldest. */
class Ring {
  readonly #what: Remembered['what']
  readonly #capacity: number
  readonly #rows: Buffer
  readonly #lengths: Uint16Array
  #names: readonly string[] = []
  #next = 0
  #size = 0
  /** The second in which requests are counted began at this time (ms on the monotonic clock). */
  #secondFrom = Number.NEGATIVE_INFINITY
  #inSecond = 0

  constructor(what: Remembered['what'], capacity: number) {
    this.#what = what
    this.#capacity = capacity
    this.#rows = Buffer.alloc(capacity * ROW)
    this.#lengths = new Uint16Array(capacity)
  }

  /** Remembers a request that has ended, unless it is one of too many in a second. */
  add(exchange: Exchange, wall: number): void {
    const now = exchange.start + exchange.duration
    if (now >= this.#secondFrom + 1000) {
      this.#secondFrom = now
      this.#inSecond = 0
    }
    this.#inSecond += 1
    if (this.#inSecond > this.#capacity / SECONDS) return
    const slot = this.#next
    const facts = factsOf(exchange, wall)
    if (this.#size === 0) this.#names = Object.keys(facts)
    let row = rowText(facts)
    // Each character of the path takes one or two.
    if (row.length > ROW) row = rowText({ ...facts, path: facts.path.slice(0, ROW - row.length) })
    if (row.length > ROW) return
    this.#lengths[slot] = this.#rows.write(row, slot * ROW, ROW, 'latin1')
    this.#next = slot + 1 === this.#capacity ? 0 : slot + 1
    if (this.#size < this.#capacity) this.#size += 1
  }

  last(count: number): RequestFacts[] {
    return Array.from({ length: Math.min(count, this.#size) }, (_, age) => this.#read(this.#slotOf(age)))
  }

  find(id: string): RequestFacts[] {
    const start = Buffer.from(`[${JSON.stringify(id)},`, 'latin1')
    const slots = Array.from({ length: this.#size }, (_, age) => this.#slotOf(age))
    return slots.filter((slot) => this.#rowAt(slot).indexOf(start) === 0).map((slot) => this.#read(slot))
  }

  remembered(): Remembered {
    const oldest = this.#size === 0 ? null : this.#read(this.#slotOf(this.#size - 1)).time
    return { what: this.#what, requests: this.#size, since: oldest }
  }

  #slotOf(age: number): number {
    return (this.#next - 1 - age + this.#capacity) % this.#capacity
  }

  #rowAt(slot: number): Buffer {
    return this.#rows.subarray(slot * ROW, slot * ROW + (this.#lengths[slot] ?? 0))
  }

  #read(slot: number): RequestFacts {
    const values: readonly unknown[] = JSON.parse(this.#rowAt(slot).toString('latin1'))
    // Proof of the cast: `add` wrote the values of such facts, in the order of their names.
    return Object.fromEntries(this.#names.map((name, at) => [name, values[at]])) as unknown as RequestFacts
  }
}
