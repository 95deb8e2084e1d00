/** The facts about a client on which its fair share depends. */
interface Sharer {
  readonly bytes: number
  /** The grant that gives the client precedence; undefined without one. */
  readonly grant: string | undefined
}

/** The most that each client may hold (bytes). */
export interface FairShare {
  readonly withGrant: number
  readonly withoutGrant: number
}

/** The part of the memory that is reserved for clients without a grant. */
const WITHOUT_GRANT = 0.1

/**
 * The fair shares of `memory` (bytes) by max-min fairness: a client that holds less than an equal share keeps what it holds, and the
 * others divide the rest equally.
 *
 * @param grantsFirst clients with a grant divide nine tenths first; clients without one divide what is then left of the whole
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
 * The level (bytes) at which the sum over the clients of min(bytes, level) equals `memory`. If everything held fits, the level is that of
 * the largest client plus all that is free.
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
