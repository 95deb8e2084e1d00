import { type ClientAccount, type Holding, PATIENCE } from '../memory/account.ts'
import type { Clock } from '../system/clock.ts'

export interface ConnectionPlacesDependencies {
  /** `listen.max_connections`, read for each connection. */
  readonly limits: { readonly maxConnections: number }
  readonly clock: Pick<Clock, 'monotonic'>
  /** Called when a connection is closed so that another client may have its place. */
  readonly onTaken: () => void
}

/**
 * The places for connections. When all are taken, a client with few connections gets a place of the client with most of them (C26): a few
 * addresses would otherwise fill all places, each within its own cap, and refuse everyone else for as long as they like.
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

  /** The connection whose place a newcomer gets. */
  function loserTo(newcomer: ClientAccount): Holding | undefined {
    // A trusted proxy carries many clients: it counts as a newcomer for each of them, and loses no place to others.
    const own = newcomer.isProxy ? 0 : (clients.get(newcomer)?.size ?? 0)
    return heavierThan(weightOf(newcomer, own + 1)) ?? (own === 0 ? idleWithoutGrant() : undefined)
  }

  /** A connection of the client that weighs most, of those that weigh more than `least`. */
  function heavierThan(least: number): Holding | undefined {
    let heaviest = least
    let loser: Holding | undefined
    for (const [client, connections] of clients) {
      const weight = weightOf(client, connections.size)
      const found = client.isProxy || weight <= heaviest ? undefined : leastMissed(connections)
      if (found === undefined) continue
      heaviest = weight
      loser = found
    }
    return loser
  }

  /** A connection without work that is a second old, of a client without a live grant. */
  function idleWithoutGrant(): Holding | undefined {
    const stale = clock.monotonic() - PATIENCE
    for (const [{ isProxy, grant }, connections] of clients) {
      if (isProxy || grant !== undefined) continue
      for (const [each, openedAt] of connections) if (openedAt <= stale && !each.holder.working) return each
    }
    return undefined
  }

  return {
    /** Whether the client may open one more connection. Closes one of another client for it if need be. */
    mayTake(client: ClientAccount): boolean {
      if (taken < limits.maxConnections) return true
      const loser = loserTo(client)
      if (loser === undefined) return false
      onTaken()
      release(loser)
      loser.holder.drop()
      loser.close()
      return true
    },
    /** A connection was opened. */
    take(holding: Holding): void {
      taken += 1
      const own = clients.get(holding.client)
      if (own === undefined) clients.set(holding.client, new Map([[holding, clock.monotonic()]]))
      else own.set(holding, clock.monotonic())
    },
    /** A connection has closed. Also called for one that has lost its place before. */
    release,
  }
}

/** A client without a live grant weighs as if it had one connection more. */
function weightOf({ grant }: ClientAccount, connections: number): number {
  return connections + (grant === undefined ? 1 : 0)
}

/** The oldest without work; if all work, the oldest without a request at the device. */
function leastMissed(connections: ReadonlyMap<Holding, number>): Holding | undefined {
  let spare: Holding | undefined
  for (const holding of connections.keys()) {
    if (!holding.holder.working) return holding
    if (!holding.holder.atDevice) spare ??= holding
  }
  return spare
}
