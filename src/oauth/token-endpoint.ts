import type { TokenRequest } from '../http/admission.ts'
import type { Exchange, Reply } from '../http/exchange.ts'
import { jsonReply } from '../http/json-reply.ts'
import type { Refusal } from '../http/refusal.ts'
import type { IssuedTokens } from '../tokens/token-contract.ts'
import { readFormRequest, required } from './form-request.ts'
import { type Grant, type GrantResult, refuse } from './grant.ts'

export interface TokenEndpointDependencies {
  /** The grant types, in the order in which a refusal lists them. */
  readonly grants: readonly Grant[]
  /** The deadline of the request body (ms). */
  readonly bodyTimeout: () => number
}

/** The answer of one of the sidecar's own endpoints. `close`: the request body was not read to its end. */
type TokenAnswer =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly close: boolean }

export type TokenEndpoint = (request: TokenRequest, exchange: Exchange) => Promise<TokenAnswer>

/** The token endpoint, `POST /oauth/token`: form, grant, answer. A refusal ends the steps. */
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
