import { prefix64 } from '../http/ip.ts'
import { nameOfGrant } from '../http/scope.ts'
import type { Clock } from '../system/clock.ts'
import type { GrantSummary, Revocation } from '../tokens/state.ts'

/** How many clients are remembered. Beyond that, the one goes whose last login or refresh is the oldest. */
export const MOST_KNOWN = 10_000

/** After so many wrong passwords since its last right one, a client counts as unknown. */
const MOST_WRONG = 4

interface Known {
  /** Its latest grant. */
  readonly grant: string
  /** On the monotonic clock (ms). */
  readonly until: number
  /** Wrong passwords since the last right one. */
  wrong: number
}

/**
 * The clients that have logged in before, by their keys: each has a grant, or had one that ended at most a refresh lifetime ago by its time
 * or by a change of the password. Those of a grant that an operator revoked are forgotten.
 */
export class KnownClients {
  readonly #clock: Clock
  readonly #refreshLifetime: () => number
  /** The latest last. */
  readonly #clients = new Map<string, Known>()

  /** @param refreshLifetime milliseconds */
  constructor(clock: Clock, refreshLifetime: () => number) {
    this.#clock = clock
    this.#refreshLifetime = refreshLifetime
  }

  get size(): number {
    return this.#clients.size
  }

  has(client: string): boolean {
    const known = this.#clients.get(client)
    return known !== undefined && this.#clock.monotonic() < known.until && known.wrong < MOST_WRONG
  }

  loggedIn(client: string, grant: string): void {
    this.#remember(client, grant, this.#refreshLifetime(), 0)
  }

  /** Prolongs what is known. It makes no client known, which may have stolen the token, and a token is no password, so wrong ones stay. */
  refreshed(client: string, grant: string): void {
    const known = this.#clients.get(client)
    if (known !== undefined) this.#remember(client, grant, this.#refreshLifetime(), known.wrong)
  }

  wrongPassword(client: string): void {
    const known = this.#clients.get(client)
    if (known !== undefined) known.wrong += 1
  }

  /** Adds the clients of live grants that this process did not issue: it has restarted, or another sidecar issued them. The latest first. */
  restore(grants: readonly GrantSummary[]): void {
    for (const { id, client, expiresAt, label } of grants.toReversed()) {
      const key = prefix64(client)
      // An issued token belongs to no client that logs in.
      if (label === undefined && !this.#clients.has(key))
        this.#remember(key, id, expiresAt - this.#clock.wall(), 0)
    }
  }

  /** An operator has revoked these grants. */
  revoked(which: Revocation): void {
    if ('all' in which) this.#clients.clear()
    else if ('client' in which) this.#clients.delete(which.client)
    else if ('name' in which) this.#forget((grant) => nameOfGrant(grant) === which.name)
    else if ('grant' in which) this.#forget((grant) => grant === which.grant)
    else if ('grants' in which) this.#forget((grant) => which.grants.includes(grant))
  }

  #forget(isMeant: (grant: string) => boolean): void {
    for (const [client, { grant }] of this.#clients) if (isMeant(grant)) this.#clients.delete(client)
  }

  /** @param lasts how long its grant lasts (ms) */
  #remember(client: string, grant: string, lasts: number, wrong: number): void {
    this.#clients.delete(client)
    const [oldest] = this.#clients.keys()
    if (this.#clients.size >= MOST_KNOWN && oldest !== undefined) this.#clients.delete(oldest)
    const until = this.#clock.monotonic() + lasts + this.#refreshLifetime()
    this.#clients.set(client, { grant, until, wrong })
  }
}
