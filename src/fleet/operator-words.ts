import { BY_OPERATOR, type Revocation } from '../tokens/revocation.ts'

/** The kind of a message that revokes grants. In a revocation by an operator, its scope follows: see `sayRevoked`. */
export const REVOKED = 'revoked'

/**
 * The kind of the message for a revocation: `revoked`, or by an operator `revoked client 192.0.2.1`, `revoked name kiosk`, `revoked
 * grants`. A client whose grants an operator revokes loses its precedence in the queue of logins at every sidecar; a client that logs out
 * keeps it.
 */
export function sayRevoked(which: Revocation, reason: string): string {
  if (reason !== BY_OPERATOR) return REVOKED
  if ('client' in which) return `${REVOKED} client ${which.client}`
  if ('name' in which) return `${REVOKED} name ${which.name}`
  return `${REVOKED} grants`
}

/** The operator's revocation in a message of this kind about these grants; undefined if no operator has revoked them. */
export function saidByOperator(kind: string, grants: readonly string[]): Revocation | undefined {
  const [, by, whose = ''] = kind.split(' ')
  if (by === 'all') return { all: true }
  if (by === 'client') return { client: whose }
  if (by === 'name') return { name: whose }
  return by === undefined ? undefined : { grants }
}
