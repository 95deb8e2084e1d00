import type { Exchange } from '../http/exchange.ts'
import type { Clock } from '../system/clock.ts'
import { type Explanation, explain, type RequestRow, rowOf } from './explanation.ts'
import { NUMBERS, type RequestFacts, readFacts, wordsOf, writeNumbers } from './request-facts.ts'

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

/** The space for the words of a request (bytes). What is longer loses the end of its path. */
const WORDS = 352

const ROWS = 50

/**
 * Remembers requests in 1 MiB at most, whatever clients send. The words of a request are copied into bytes that are allocated
 * once: a string that V8 cut out of a request head would keep the whole head, and the token in it, in memory.
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

function latestFirst(facts: readonly RequestFacts[]): RequestFacts[] {
  return facts.toSorted((a, b) => b.time - a.time)
}

/** The last requests of one kind. A new one takes the place of the oldest. */
class Ring {
  readonly #what: Remembered['what']
  readonly #capacity: number
  readonly #numbers: Float64Array
  readonly #words: Buffer
  readonly #lengths: Uint16Array
  #next = 0
  #size = 0
  /** The second in which requests are counted began at this time (ms on the monotonic clock). */
  #secondFrom = Number.NEGATIVE_INFINITY
  #inSecond = 0

  constructor(what: Remembered['what'], capacity: number) {
    this.#what = what
    this.#capacity = capacity
    this.#numbers = new Float64Array(capacity * NUMBERS)
    this.#words = Buffer.alloc(capacity * WORDS)
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
    writeNumbers(exchange, wall, this.#numbers, slot * NUMBERS)
    this.#lengths[slot] = this.#words.write(wordsOf(exchange), slot * WORDS, WORDS, 'latin1')
    this.#next = slot + 1 === this.#capacity ? 0 : slot + 1
    if (this.#size < this.#capacity) this.#size += 1
  }

  last(count: number): RequestFacts[] {
    return Array.from({ length: Math.min(count, this.#size) }, (_, age) => this.#read(this.#slotOf(age)))
  }

  find(id: string): RequestFacts[] {
    const start = Buffer.from(`${id}\n`, 'latin1')
    const slots = Array.from({ length: this.#size }, (_, age) => this.#slotOf(age))
    return slots.filter((slot) => this.#wordsAt(slot).indexOf(start) === 0).map((slot) => this.#read(slot))
  }

  remembered(): Remembered {
    const oldest = this.#size === 0 ? null : this.#read(this.#slotOf(this.#size - 1)).time
    return { what: this.#what, requests: this.#size, since: oldest }
  }

  #slotOf(age: number): number {
    return (this.#next - 1 - age + this.#capacity) % this.#capacity
  }

  #wordsAt(slot: number): Buffer {
    return this.#words.subarray(slot * WORDS, slot * WORDS + (this.#lengths[slot] ?? 0))
  }

  #read(slot: number): RequestFacts {
    const numbers = this.#numbers.subarray(slot * NUMBERS, (slot + 1) * NUMBERS)
    return readFacts(numbers, this.#wordsAt(slot).toString('latin1'))
  }
}
