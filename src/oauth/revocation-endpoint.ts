import { jsonReply } from '../http/json-reply.ts'
import { readFormRequest, required } from './form-request.ts'
import type { TokenEndpoint } from './token-endpoint.ts'

export interface RevocationEndpointDependencies {
  /** Revokes the grant of a token of either kind. */
  readonly revoke: (token: string) => unknown
  readonly bodyTimeout: () => number
}

/**
 * RFC 7009: whoever holds a token may revoke it, and its whole grant with it (§2.1). A token that nobody knows is
 * revoked already, so that too is 200 (§2.2); `token_type_hint` only saves a search that costs nothing here.
 */
export function createRevocationEndpoint({
  revoke,
  bodyTimeout,
}: RevocationEndpointDependencies): TokenEndpoint {
  return async (_request, exchange) => {
    const form = await readFormRequest(exchange, bodyTimeout())
    if (form.kind === 'refused') return form
    const given = required(form.parameters, ['token'])
    if (given.kind === 'refused') return { ...given, close: false }
    await revoke(given.values.token)
    return { kind: 'reply', reply: jsonReply(200, {}) }
  }
}
