/** How many clients with a grant are remembered when they hold nothing, and for how long (ms). */
const MOST = 10_000
const LASTS = 3_600_000

/**
 * Which grant a client had when it held something last: it keeps its precedence when it comes back. Past `MOST` clients, the one that left
 * first is forgotten.
 */
export class RememberedGrants {
  readonly #clock: { readonly monotonic: () => number }
  readonly #grants = new Map<string, { readonly grant: string; readonly until: number }>()

  constructor(clock: { readonly monotonic: () => number }) {
    this.#clock = clock
  }

  /** The grant of a client that held nothing since; undefined if it had none, or has been away for too long. */
  grantOf(client: string): string | undefined {
    const known = this.#grants.get(client)
    return known !== undefined && this.#clock.monotonic() < known.until ? known.grant : undefined
  }

  /** The client holds nothing any more. */
  remember(client: string, grant: string): void {
    this.#grants.delete(client)
    const [first] = this.#grants.keys()
    if (this.#grants.size >= MOST && first !== undefined) this.#grants.delete(first)
    this.#grants.set(client, { grant, until: this.#clock.monotonic() + LASTS })
  }

  /** These grants were revoked. */
  forget(grants: ReadonlySet<string>): void {
    for (const [client, { grant }] of this.#grants) if (grants.has(grant)) this.#grants.delete(client)
  }
}
