/** Which clients come first while passwords wait. */
export interface Precedence {
  /** Whether this client has logged in before, and has not guessed since. */
  isKnown(client: string): boolean
  /** The weight of an address among those of unknown clients: above 0, and less after wrong passwords. */
  weightOf(address: string): number
}

/** No client is known, and all addresses weigh the same. */
export const ALL_EQUAL: Precedence = { isKnown: () => false, weightOf: () => 1 }

interface Waiter {
  readonly client: string
  /** Where it comes from. Several clients may have one address: the /64s of an IPv6 /48. */
  readonly address: string
}

/** While both wait, one of so many turns goes to a client that is not known. */
const ONE_IN = 8

/** The share of a known client: more than those of all others together. */
const KNOWN_SHARE = 1e6

/**
 * Who is next of those that wait (C26). Turns are weighted, never strict: no client has to wait for all others of a kind, so none starves.
 *
 * - Known clients come first, in turn, with seven turns of eight.
 * - Each other turn is drawn. Every address has one share in the draw, less after wrong passwords, and its clients divide it. So a new
 *   address is soon drawn beside hundreds that guess, and many clients in one IPv6 /48 gain nothing.
 *
 * Looks at all waiters for each turn: a turn is worth milliseconds of hashing.
 */
export class WeightedTurns<W extends Waiter> {
  readonly #precedence: Precedence
  readonly #random: () => number
  /** In the order of arrival, but a known client that had a turn goes behind the others. */
  readonly #waiters = new Set<W>()
  /** How many waiters each client has, by address. */
  readonly #counts = new Map<string, Map<string, number>>()
  #turnsOfKnown = 0

  /** @param random from 0 to below 1 */
  constructor(precedence: Precedence, random: () => number) {
    this.#precedence = precedence
    this.#random = random
  }

  join(waiter: W): void {
    this.#waiters.add(waiter)
    this.#count(waiter, 1)
  }

  leave(waiter: W): void {
    if (this.#waiters.delete(waiter)) this.#count(waiter, -1)
  }

  /** The waiter whose turn it is; undefined if none waits. */
  next(): W | undefined {
    const { known = [], others = [] } = Object.groupBy(this.#waiters, ({ client }) =>
      this.#precedence.isKnown(client) ? 'known' : 'others',
    )
    const [first] = known
    if (first === undefined || (others.length > 0 && this.#turnsOfKnown === ONE_IN - 1)) {
      this.#turnsOfKnown = 0
      return this.#draw(others)
    }
    if (others.length > 0) this.#turnsOfKnown += 1
    for (const waiter of known) {
      if (waiter.client !== first.client) continue
      this.#waiters.delete(waiter)
      this.#waiters.add(waiter)
    }
    return first
  }

  #draw(waiters: readonly W[]): W | undefined {
    const shares = waiters.map((waiter) => this.shareOf(waiter))
    let at = this.#random() * shares.reduce((sum, share) => sum + share, 0)
    const drawn = shares.findIndex((share) => {
      at -= share
      return at < 0
    })
    // Of the waiters of its client, the first.
    const client = waiters[Math.max(0, drawn)]?.client
    return waiters.find((waiter) => waiter.client === client)
  }

  /** The share of a waiter. The clients of an address divide its share, and the waiters of a client that of the client. Takes constant time. */
  shareOf({ address, client }: W): number {
    const clients = this.#counts.get(address)
    const theirs = clients?.get(client) ?? 1
    if (this.#precedence.isKnown(client)) return KNOWN_SHARE / theirs
    return this.#precedence.weightOf(address) / (clients?.size ?? 1) / theirs
  }

  #count({ address, client }: W, change: 1 | -1): void {
    const clients = this.#counts.get(address) ?? new Map<string, number>()
    const count = (clients.get(client) ?? 0) + change
    if (count > 0) clients.set(client, count)
    else clients.delete(client)
    if (clients.size > 0) this.#counts.set(address, clients)
    else this.#counts.delete(address)
  }
}
