import type { Clock, Timer } from '../system/clock.ts'
import type { Logger } from './log.ts'

/** The period of the budgets of lines (ms). */
const PERIOD = 10_000

/**
 * The most lines of a period. Each client has ten for each kind of refusal. All clients together have 30 for a kind. A client without a
 * line still gets its first one up to 60, so a few addresses cannot keep the others out of the log. `ofAll`: over all kinds.
 */
const LINES = { ofClient: 10, ofKind: 30, withFirst: 60, ofAll: 200 }

/** The most clients of a kind whose refusals are counted one by one. */
const COUNTED = 200
/** Clients with refusals without a line are counted up to this number. */
const TOLD_APART = 1_000
/** The most clients that the sum names. */
const NAMED = 5

interface ClientCount {
  lines: number
  /** Refusals without a line: exact up to `COUNTED` clients, and with more clients too low, never too high. */
  withheld: number
}

/**
 * The refusals of one kind in a period. Its memory is bounded, however many addresses an attacker uses: the counts are a Misra-Gries
 * summary, which keeps each client with more than its share of the refusals.
 */
class Kind {
  lines = 0
  withheld = 0
  readonly #clients = new Map<string, ClientCount>()
  readonly #toldApart = new Set<string>()

  /** Counts a refusal, and decides whether it gets a line. `isLeft`: the period still has a line. */
  take(client: string, isLeft: boolean): boolean {
    const known = this.#clients.get(client)
    const most = known === undefined || known.lines === 0 ? LINES.withFirst : LINES.ofKind
    if (isLeft && this.lines < most && (known?.lines ?? 0) < LINES.ofClient) {
      this.lines += 1
      if (known === undefined) this.#clients.set(client, { lines: 1, withheld: 0 })
      else known.lines += 1
      return true
    }
    this.withheld += 1
    if (known !== undefined && known.withheld > 0) known.withheld += 1
    else this.#withhold(client, known)
    return false
  }

  #withhold(client: string, known: ClientCount | undefined): void {
    if (this.#toldApart.size < TOLD_APART) this.#toldApart.add(client)
    if (known !== undefined) known.withheld += 1
    else if (this.#clients.size < COUNTED) this.#clients.set(client, { lines: 0, withheld: 1 })
    else this.#cancel()
  }

  /** Cancels this refusal against one refusal of each counted client. Constant time for each refusal, amortized. */
  #cancel(): void {
    for (const [client, count] of this.#clients) {
      if (count.withheld > 0) count.withheld -= 1
      if (count.withheld === 0 && count.lines === 0) this.#clients.delete(client)
    }
  }

  /** The refusals without a line: their number, the number of their clients, and the clients with the most. */
  sum(): { readonly count: number; readonly clients: number; readonly most: Record<string, number> } {
    const counts = [...this.#clients].filter(([, { withheld }]) => withheld > 0)
    const most = counts.sort(([, a], [, b]) => b.withheld - a.withheld).slice(0, NAMED)
    return {
      count: this.withheld,
      clients: this.#toldApart.size,
      most: Object.fromEntries(most.map(([client, { withheld }]) => [client, withheld])),
    }
  }
}

/**
 * Decides which refusals have a line of their own, at most 200 in ten seconds, so that neither one client nor many addresses fill a disk.
 * After that, one line for each kind has the number of refusals without a line, the number of their clients (1,000 means: or more), and the
 * five clients with the most.
 */
export function createRefusalLines(log: Logger, clock: Pick<Clock, 'after'>) {
  const kinds = new Map<string, Kind>()
  let lines = 0
  let timer: Timer | undefined

  function sumUp(): void {
    timer?.cancel()
    timer = undefined
    lines = 0
    for (const [refusal, kind] of kinds) {
      if (kind.withheld > 0) log.info({ refusal, ...kind.sum() }, 'more refusals')
    }
    kinds.clear()
  }

  return {
    /**
     * Whether this refusal gets a line. If not, the sum counts it.
     *
     * @param client the key of the client: an IPv4 address, or the /64 of an IPv6 one
     */
    take(kind: string, client: string): boolean {
      // The timer runs only after a refusal: an idle process is not woken.
      timer ??= clock.after(PERIOD, sumUp)
      let found = kinds.get(kind)
      if (found === undefined) {
        found = new Kind()
        kinds.set(kind, found)
      }
      const isLogged = found.take(client, lines < LINES.ofAll)
      if (isLogged) lines += 1
      return isLogged
    },
    /** Writes the pending sums. */
    close: sumUp,
  }
}
