/** How many clients are remembered, and for how long (ms). */
const MOST = 10_000
const LASTS = 3_600_000

/**
 * Remembers the grants of clients that hold nothing at the moment, so that a client keeps its precedence when it comes back. Beyond `MOST`
 * clients, the client that left first is forgotten.
 */
export class RememberedGrants {
  readonly #clock: { readonly monotonic: () => number }
  readonly #grants = new Map<string, { readonly grant: string; readonly until: number }>()

  constructor(clock: { readonly monotonic: () => number }) {
    this.#clock = clock
  }

  /** The remembered grant of a client; undefined if it had none, or left longer ago than `LASTS`. */
  grantOf(client: string): string | undefined {
    const known = this.#grants.get(client)
    return known !== undefined && this.#clock.monotonic() < known.until ? known.grant : undefined
  }

  /** Call this when a client with a grant holds nothing any more. */
  remember(client: string, grant: string): void {
    this.#grants.delete(client)
    const [first] = this.#grants.keys()
    if (this.#grants.size >= MOST && first !== undefined) this.#grants.delete(first)
    this.#grants.set(client, { grant, until: this.#clock.monotonic() + LASTS })
  }

  /** Forgets grants that have ended. */
  forget(grants: ReadonlySet<string>): void {
    for (const [client, { grant }] of this.#grants) if (grants.has(grant)) this.#grants.delete(client)
  }
}
