import { type ClientAccount, type Holding, UNTOUCHED_FOR } from '../memory/account.ts'
import type { Clock } from '../system/clock.ts'

interface ConnectionPlacesDependencies {
  /** `listen.max_connections`, read for each connection. */
  readonly limits: { readonly maxConnections: number }
  readonly clock: Pick<Clock, 'monotonic'>
  /** Called when a connection is closed to give its place to another client. */
  readonly onTaken: () => void
}

/**
 * The places for connections. When all are taken, a client with few connections gets a place of the client with most of them (C26).
 * Otherwise a few addresses, each within its own cap, could hold all places and lock out every other client.
 */
export function createConnectionPlaces({ limits, clock, onTaken }: ConnectionPlacesDependencies) {
  /** The connections of each client, the oldest first, and when each was opened. */
  const clients = new Map<ClientAccount, Map<Holding, number>>()
  let taken = 0

  function release(holding: Holding): void {
    const own = clients.get(holding.client)
    if (!own?.delete(holding)) return
    taken -= 1
    if (own.size === 0) clients.delete(holding.client)
  }

  /** The connection that closes to give its place to a newcomer; undefined if none may close. */
  function victimFor(newcomer: ClientAccount): Holding | undefined {
    // A trusted proxy carries many clients, so each of its connections counts as the first of a client. It loses no place to others.
    const own = newcomer.isProxy ? 0 : (clients.get(newcomer)?.size ?? 0)
    return heavierThan(weightOf(newcomer, own + 1)) ?? (own === 0 ? idleWithoutGrant() : undefined)
  }

  /** A connection of the heaviest client above the weight `least`. Skips clients whose requests are all at the device. */
  function heavierThan(least: number): Holding | undefined {
    let heaviest = least
    let victim: Holding | undefined
    for (const [client, connections] of clients) {
      const weight = weightOf(client, connections.size)
      const found = client.isProxy || weight <= heaviest ? undefined : leastBusy(connections)
      if (found === undefined) continue
      heaviest = weight
      victim = found
    }
    return victim
  }

  /** A connection without work, at least `UNTOUCHED_FOR` old, of a client without a live grant. */
  function idleWithoutGrant(): Holding | undefined {
    const stale = clock.monotonic() - UNTOUCHED_FOR
    for (const [{ isProxy, grant }, connections] of clients) {
      if (isProxy || grant !== undefined) continue
      for (const [each, openedAt] of connections) if (openedAt <= stale && !each.holder.working) return each
    }
    return undefined
  }

  return {
    /** Whether the client may open one more connection. If no place is free, closes a connection of another client. */
    mayTake(client: ClientAccount): boolean {
      if (taken < limits.maxConnections) return true
      const victim = victimFor(client)
      if (victim === undefined) return false
      onTaken()
      release(victim)
      victim.holder.cut()
      victim.close()
      return true
    },
    /** Call this when a connection has opened. */
    take(holding: Holding): void {
      taken += 1
      const own = clients.get(holding.client)
      if (own === undefined) clients.set(holding.client, new Map([[holding, clock.monotonic()]]))
      else own.set(holding, clock.monotonic())
    },
    /** Call this when a connection has closed. Does nothing if it lost its place earlier. */
    release,
  }
}

/** The weight of a client: its connections, and one more if it has no live grant. */
function weightOf({ grant }: ClientAccount, connections: number): number {
  return connections + (grant === undefined ? 1 : 0)
}

/** The oldest connection without work; if all work, the oldest without a request at the device; otherwise undefined. */
function leastBusy(connections: ReadonlyMap<Holding, number>): Holding | undefined {
  let spare: Holding | undefined
  for (const holding of connections.keys()) {
    if (!holding.holder.working) return holding
    if (!holding.holder.atDevice) spare ??= holding
  }
  return spare
}
