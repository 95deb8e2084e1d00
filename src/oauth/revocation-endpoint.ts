import { jsonReply } from '../http/reply.ts'
import type { Tokens } from '../tokens/token-contract.ts'
import { readFormRequest, required } from './form-request.ts'
import { type OwnEndpointHandler, refuse } from './token-endpoint.ts'

export interface RevocationEndpointDependencies {
  /** Revokes the grant of a token of either kind. */
  readonly revoke: (token: string) => ReturnType<Tokens['revoke']>
  readonly bodyTimeout: () => number
}

/**
 * The revocation endpoint (RFC 7009). A token authorizes its own revocation, which revokes the whole grant (§2.1). The response
 * for an unknown token is 200 too (§2.2). `token_type_hint` is ignored, because one lookup finds tokens of both kinds.
 */
export function createRevocationEndpoint({
  revoke,
  bodyTimeout,
}: RevocationEndpointDependencies): OwnEndpointHandler {
  return async (exchange) => {
    const form = await readFormRequest(exchange, bodyTimeout())
    if (form.kind === 'refused') return form
    const given = required(form.parameters, ['token'])
    if (given.kind === 'refused') return { ...given, close: false }
    if ((await revoke(given.values.token)) === 'unavailable')
      return { ...refuse({ kind: 'store-unavailable' }), close: false }
    return { kind: 'reply', reply: jsonReply(200, {}) }
  }
}
