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
  /** Where it comes from. Several clients may have one address: the /64s of an IPv6 /48. */
  readonly address: string
}

/** While known and unknown clients wait, an unknown one gets one turn of this number. */
const ONE_IN = 8

/** The share of a known client: more than the shares of all unknown ones together. */
const KNOWN_SHARE = 1e6

/**
 * Chooses which waiter has the next turn (C26). Turns are weighted, never strict, so no client starves.
 *
 * - Known clients have seven turns of eight, one after the other.
 * - The other turns are drawn. An address has one share in the draw, less with each wrong password, and its clients divide the share. So a new
 *   address is soon drawn beside hundreds that guess, and many clients in one IPv6 /48 gain nothing.
 *
 * A choice looks at all waiters, which costs little beside the milliseconds of a hash.
 */
export class WeightedTurns<W extends Waiter> {
  readonly #precedence: Precedence
  readonly #random: () => number
  /** In the order of arrival. The waiters of a known client that had a turn move to the end. */
  readonly #waiters = new Set<W>()
  #turnsOfKnown = 0

  /** @param random from 0 to below 1 */
  constructor(precedence: Precedence, random: () => number) {
    this.#precedence = precedence
    this.#random = random
  }

  join(waiter: W): void {
    this.#waiters.add(waiter)
  }

  leave(waiter: W): void {
    this.#waiters.delete(waiter)
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
    const shares = [...this.#sharesOf(waiters)]
    let at = this.#random() * shares.reduce((sum, [, share]) => sum + share, 0)
    const drawn = shares.find(([, share]) => {
      at -= share
      return at < 0
    })
    // The first waiter of the drawn client.
    const client = (drawn ?? shares[0])?.[0].client
    return waiters.find((waiter) => waiter.client === client)
  }

  /** The share of each waiter. The waiters of a client divide its share. */
  shares(): ReadonlyMap<W, number> {
    return this.#sharesOf([...this.#waiters])
  }

  #sharesOf(waiters: readonly W[]): ReadonlyMap<W, number> {
    const shares = new Map<W, number>()
    for (const [address, there] of Map.groupBy(waiters, (waiter) => waiter.address)) {
      const clients = Map.groupBy(there, ({ client }) => client)
      const ofClient = this.#precedence.weightOf(address) / clients.size
      for (const [client, theirs] of clients) {
        const share = this.#precedence.isKnown(client) ? KNOWN_SHARE : ofClient
        for (const waiter of theirs) shares.set(waiter, share / theirs.length)
      }
    }
    return shares
  }
}
