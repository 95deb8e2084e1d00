/** A client, as the shares see it. */
export interface Sharer {
  readonly bytes: number
  /** The grant that gives it precedence; undefined without one. */
  readonly grant: string | undefined
}

/** The most that each client may hold (bytes). */
export interface FairShare {
  readonly withGrant: number
  readonly withoutGrant: number
}

/** The part of the memory that clients without a grant have in any case. */
const WITHOUT_GRANT = 0.1

/**
 * The fair shares of `memory` (bytes): the highest level for which what clients hold, each counted up to it, fits it. A client that
 * holds less keeps what it holds, and the others share what it leaves (max-min fairness).
 *
 * @param grantsFirst clients with a grant share it first, but for a tenth of it
 */
export function fairShare(clients: readonly Sharer[], memory: number, grantsFirst: boolean): FairShare {
  if (!grantsFirst) {
    const level = waterLevel(clients, memory)
    return { withGrant: level, withoutGrant: level }
  }
  const granted = clients.filter(({ grant }) => grant !== undefined)
  const withGrant = waterLevel(granted, memory * (1 - WITHOUT_GRANT))
  const taken = granted.reduce((sum, { bytes }) => sum + Math.min(bytes, withGrant), 0)
  const others = clients.filter(({ grant }) => grant === undefined)
  return { withGrant, withoutGrant: waterLevel(others, memory - taken) }
}

/**
 * The level at which `memory` is full, if each client counts up to it. If all that is held fits it, one client may take what is left.
 */
function waterLevel(clients: readonly Sharer[], memory: number): number {
  const held = clients.map(({ bytes }) => bytes).sort((a, b) => a - b)
  let left = memory
  for (const [at, bytes] of held.entries()) {
    const share = left / (held.length - at)
    if (bytes >= share) return share
    left -= bytes
  }
  return (held.at(-1) ?? 0) + left
}
