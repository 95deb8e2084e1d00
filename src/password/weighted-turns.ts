/** Which clients come first while passwords wait. */
export interface Precedence {
  /** Whether the client has logged in before, and has not guessed since. */
  isKnown(client: string): boolean
  /** The weight of an address among the addresses of unknown clients: above 0, and less with each wrong password. */
  weightOf(address: string): number
}

/** No client is known, and all addresses weigh the same. */
export const ALL_EQUAL: Precedence = { isKnown: () => false, weightOf: () => 1 }

interface Waiter {
  readonly client: string
  /** The network of the client. Several clients may share one: the /64s of an IPv6 /48. */
  readonly address: string
}

/** While known and unknown clients wait, one of this many turns goes to an unknown client. */
const ONE_IN = 8

/** The share of a known client: more than the shares of all unknown clients together. */
const KNOWN_SHARE = 1e6

/**
 * Chooses which waiter has the next turn (C26). Turns are weighted, never strict, so no client starves.
 *
 * - Known clients have seven turns of eight, one after the other.
 * - The other turns are drawn by lot. Each address has one share in the draw, which falls with each wrong password, and its clients divide
 *   the share. So a new address is soon drawn beside hundreds that guess, and many clients in one IPv6 /48 gain nothing.
 *
 * Each choice looks at all waiters. That costs little beside the milliseconds of a hash.
 */
export class WeightedTurns<W extends Waiter> {
  readonly #precedence: Precedence
  readonly #random: () => number
  /** In the order of arrival, but a turn moves all waiters of a known client to the end. */
  readonly #waiters = new Set<W>()
  /** The number of waiters of each client, by address. */
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

  /** The waiter with the next turn; undefined if none waits. The caller removes it by `leave`. */
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
    // The first waiter of the drawn client.
    const client = waiters[Math.max(0, drawn)]?.client
    return waiters.find((waiter) => waiter.client === client)
  }

  /** The share of a waiter: the clients of an address divide the share of the address, the waiters of a client that of the client. */
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
