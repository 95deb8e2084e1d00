import type { TokenRequest } from '../http/admission.ts'
import type { Exchange, Reply } from '../http/exchange.ts'
import { jsonReply } from '../http/json-reply.ts'
import type { Refusal } from '../http/refusal.ts'
import type { IssuedTokens } from '../tokens/token-contract.ts'
import { readFormRequest, required } from './form-request.ts'
import { type Grant, type GrantResult, refuse } from './grant.ts'

export interface TokenEndpointDependencies {
  /** The grant types that are served, in the order in which a client is told of them. */
  readonly grants: readonly Grant[]
  /** Milliseconds within which the request body must be there. */
  readonly bodyTimeout: () => number
}

/** What an endpoint of the sidecar's own answers; `close` where the request body was not read to its end. */
type TokenAnswer =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly close: boolean }

export type TokenEndpoint = (request: TokenRequest, exchange: Exchange) => Promise<TokenAnswer>

/** `POST /oauth/token`, step by step: form, grant, answer. Each step may be the last. */
export function createTokenEndpoint({ grants, bodyTimeout }: TokenEndpointDependencies): TokenEndpoint {
  const unsupported = refuse({
    kind: 'unsupported-grant-type',
    description: `The grant_type must be ${grants.map(({ name }) => `"${name}"`).join(' or ')}.`,
  })

  async function exchangeGrant(
    parameters: ReadonlyMap<string, string>,
    client: string,
  ): Promise<GrantResult> {
    const asked = required(parameters, ['grant_type'])
    if (asked.kind === 'refused') return asked
    const grant = grants.find(({ name }) => name === asked.values.grant_type)
    if (grant === undefined) return unsupported
    const given = required(parameters, grant.parameters)
    return given.kind === 'refused' ? given : grant.exchange(given.values, client)
  }

  return async (request, exchange) => {
    const form = await readFormRequest(exchange, bodyTimeout())
    if (form.kind === 'refused') return form
    const result = await exchangeGrant(form.parameters, request.client)
    return result.kind === 'granted'
      ? { kind: 'reply', reply: tokenReply(result.tokens) }
      : { kind: 'refused', refusal: result.refusal, close: false }
  }
}

/** Exactly the four fields of the device's document (C4). */
function tokenReply(tokens: IssuedTokens): Reply {
  return jsonReply(200, {
    expires_in: tokens.expiresIn,
    token_type: 'Bearer',
    refresh_token: tokens.refreshToken,
    access_token: tokens.accessToken,
  })
}
