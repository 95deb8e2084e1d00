import type { Client } from '../http/admission.ts'
import { prefix64 } from '../http/ip.ts'
import { nameOfGrant } from '../http/scope.ts'
import type { Later } from '../system/later.ts'
import type { GrantSummary } from './grant-table.ts'

/**
 * Which grants to revoke. `client`: an IPv4 address or the /64 of an IPv6 one, as for the rate limits. `name`: those of one entry of
 * `passwords`. `token`: the grant of a token of either kind (RFC 7009 §2.1 allows to revoke the whole grant).
 */
export type Revocation =
  | { readonly all: true }
  | { readonly grant: string }
  | { readonly grants: readonly string[] }
  | { readonly client: string }
  | { readonly name: string }
  | { readonly token: string }

/** The reason of a revocation by an operator: a value of the `reason` label of `postern_tokens_revoked_total`. */
export const BY_OPERATOR = 'operator'

/** The `reason` label of `postern_tokens_revoked_total` for tokens whose password has changed. */
export const PASSWORD_CHANGED = 'password_changed'

/** A revocation of all grants of a client or of a name. */
type RevokedOwner = Extract<Revocation, { client: string } | { name: string }>

/** A revocation that a sidecar begins by itself: of a name that left the configuration, or of the grants of its own sessions. */
export type Ending = Extract<Revocation, { name: string } | { grants: readonly string[] }>

/**
 * Begins an ending: this sidecar refuses the tokens at once. A shared store that does not answer gets the revocation when it answers again.
 * Returns whether the store has the revocation.
 */
export type End = (which: Ending, reason: string) => Later<boolean>

/** Whether a revocation by client or name covers this grant. */
export function isTheirs(which: RevokedOwner, { id, client }: Pick<GrantSummary, 'id' | 'client'>): boolean {
  return 'client' in which ? prefix64(client) === which.client : nameOfGrant(id) === which.name
}

/**
 * The grants that a revocation covers and the store has forgotten, but a request in flight still uses: an upload continues after the expiry
 * of its grant. A revocation by client is compared with the client of the request, because the store has forgotten that of the grant.
 *
 * @param isLive whether the store has the grant
 */
export function unfinishedOf(
  which: Revocation,
  live: Pick<LiveRequests, 'granted'>,
  isLive: (grant: string) => boolean,
): readonly string[] {
  const theirs = Array.from(live.granted()).filter(({ grant, client }) => {
    if (isLive(grant) || 'token' in which) return false
    if ('grant' in which) return grant === which.grant
    if ('grants' in which) return which.grants.includes(grant)
    return 'all' in which || isTheirs(which, { id: grant, client: client.address })
  })
  return [...new Set(theirs.map(({ grant }) => grant))]
}

/** The requests in flight with a token. They end with the grants of their tokens (C8): see `gate/live-exchanges.ts`. */
export interface LiveRequests {
  /** Ends all requests of these revoked grants. */
  cut(grants: readonly string[]): void
  /** Ends the streams and tunnels of the grants that are over; `now` on the monotonic clock (ms). */
  endStreams(now: number, isOver: (grant: string) => boolean): void
  granted(): Iterable<{ readonly grant: string; readonly client: Pick<Client, 'address'> }>
  /** The grants of the streams and tunnels that are open `now`. */
  streaming(now: number): ReadonlySet<string>
}

/** The grants of these requests. */
export function grantsInFlight(live: Pick<LiveRequests, 'granted'>): ReadonlySet<string> {
  return new Set(Array.from(live.granted(), ({ grant }) => grant))
}
