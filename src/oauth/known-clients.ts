import { prefix64 } from '../http/ip.ts'
import { nameOfGrant } from '../http/scope.ts'
import type { Clock } from '../system/clock.ts'
import type { GrantSummary } from '../tokens/grant-table.ts'
import type { Revocation } from '../tokens/revocation.ts'

/** The most clients that are remembered. A further one displaces the client with the oldest login or refresh. */
export const MOST_KNOWN = 10_000

/** A client with this many wrong passwords since its last right one is unknown. */
const MOST_WRONG = 4

interface Known {
  /** The latest grant of the client. */
  readonly grant: string
  /** When the client is forgotten (ms on the monotonic clock). */
  readonly until: number
  /** Wrong passwords since the last right one. */
  wrong: number
}

/**
 * The clients that have logged in before, by key. Such a client has a live grant, or had one that ended within the last refresh lifetime
 * because it expired or the password changed. If an operator revokes the grant of a client, the client is forgotten, in a fleet at every
 * sidecar.
 */
export class KnownClients {
  readonly #clock: Clock
  readonly #refreshLifetime: () => number
  /** The client with the latest login or refresh is the last entry. */
  readonly #clients = new Map<string, Known>()

  /** @param refreshLifetime milliseconds */
  constructor(clock: Clock, refreshLifetime: () => number) {
    this.#clock = clock
    this.#refreshLifetime = refreshLifetime
  }

  get size(): number {
    return this.#clients.size
  }

  /** @param counts whether a client with this grant may be known; default: every one */
  has(client: string, counts: (grant: string) => boolean = () => true): boolean {
    const known = this.#clients.get(client)
    if (known === undefined || this.#clock.monotonic() >= known.until) return false
    return known.wrong < MOST_WRONG && counts(known.grant)
  }

  loggedIn(client: string, grant: string): void {
    this.#remember(client, grant, this.#refreshLifetime(), 0)
  }

  /**
   * Remembers a known client for longer. A refresh makes no client known, because its token may be stolen. It does not clear the count of
   * wrong passwords, because a token proves no password.
   */
  refreshed(client: string, grant: string): void {
    const known = this.#clients.get(client)
    if (known !== undefined) this.#remember(client, grant, this.#refreshLifetime(), known.wrong)
  }

  wrongPassword(client: string): void {
    const known = this.#clients.get(client)
    if (known !== undefined) known.wrong += 1
  }

  /**
   * Adds the clients of live grants that this process does not know: from before its start, or from other sidecars of the fleet.
   *
   * @param grants the latest first
   */
  restore(grants: readonly GrantSummary[]): void {
    for (const { id, client, expiresAt, label } of grants.toReversed()) {
      const key = prefix64(client)
      // The token of an issued grant came from an operator, not from a login.
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

  /** @param lasts the time until the grant ends (ms) */
  #remember(client: string, grant: string, lasts: number, wrong: number): void {
    this.#clients.delete(client)
    const [oldest] = this.#clients.keys()
    if (this.#clients.size >= MOST_KNOWN && oldest !== undefined) this.#clients.delete(oldest)
    const until = this.#clock.monotonic() + lasts + this.#refreshLifetime()
    this.#clients.set(client, { grant, until, wrong })
  }
}
