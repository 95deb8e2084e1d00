import type { Clock } from '../system/clock.ts'
import type { Later } from '../system/later.ts'
import type { GrantTable } from './grant-table.ts'
import { type Digest, digestToken, looksMinted } from './mint.ts'
import { type LocalLookup, REFUSED, type TokenLookup } from './state.ts'

/** The tokens that this process knows. */
export interface KnownTokens {
  readonly table: GrantTable
  /** Until when they count (ms on the monotonic clock). A field and not a function, because each request reads it. */
  readonly until: number
}

/**
 * Returns the look-up of access tokens (C10), which runs on every request: a known token costs one hash and one map hit, 0.9 µs in all.
 *
 * @param ask looks up a token that is not known. `client`: the key of the client that presents it
 */
export function createLookUp<T extends Later<TokenLookup>>(
  known: KnownTokens,
  clock: Pick<Clock, 'monotonic'>,
  ask: (digest: Digest, client: string) => T,
) {
  const { table } = known
  return (accessToken: string, client: string): T | LocalLookup => {
    if (!looksMinted(accessToken)) return REFUSED.unknown
    const digest = digestToken(accessToken)
    const token = table.find(digest)
    const now = clock.monotonic()
    if (token === undefined || now > known.until) {
      const reason = table.removalReason(digest)
      return reason === undefined ? ask(digest, client) : REFUSED[reason]
    }
    if (token.kind !== 'access') return REFUSED.unknown
    if (now >= token.expiresAt) return REFUSED.expired
    table.touch(token.grant, now)
    return { kind: 'valid', grant: token.grant.id }
  }
}
