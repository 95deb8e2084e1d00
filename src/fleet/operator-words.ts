import { BY_OPERATOR, type Revocation } from '../tokens/state.ts'

/** The kind of a message that revokes grants. Behind it stands what an operator has said, if it was one. */
export const REVOKED = 'revoked'

/**
 * The kind of the message for a revocation: `revoked`, or by an operator `revoked client 192.0.2.1`, `revoked name kiosk`, `revoked grants`.
 * A client that an operator means has no precedence in the queue of logins any more, at any sidecar; one that logs out keeps it.
 */
export function sayRevoked(which: Revocation, reason: string): string {
  if (reason !== BY_OPERATOR) return REVOKED
  if ('client' in which) return `${REVOKED} client ${which.client}`
  if ('name' in which) return `${REVOKED} name ${which.name}`
  return `${REVOKED} grants`
}

/** What the operator has said, in a message of this kind about these grants; undefined if it was not an operator. */
export function saidByOperator(kind: string, grants: readonly string[]): Revocation | undefined {
  const [, by, whose = ''] = kind.split(' ')
  if (by === 'all') return { all: true }
  if (by === 'client') return { client: whose }
  if (by === 'name') return { name: whose }
  return by === undefined ? undefined : { grants }
}
