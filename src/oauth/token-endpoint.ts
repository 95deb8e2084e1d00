import type { TokenRequest } from '../http/admission.ts'
import type { Exchange, Reply } from '../http/exchange.ts'
import { jsonReply } from '../http/json-reply.ts'
import type { Refusal } from '../http/refusal.ts'
import { missingParameter, readFormRequest } from './form-request.ts'
import { type Grant, type GrantedTokens, type GrantResult, refuse } from './grant.ts'

export interface TokenEndpointDependencies {
  /** The grant types that are served, by the value of `grant_type`. */
  readonly grants: ReadonlyMap<string, Grant>
  /** Milliseconds within which the request body must be there. */
  readonly bodyTimeout: () => number
}

/** What an endpoint of the sidecar's own answers; `close` where the request body was not read to its end. */
export type TokenAnswer =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly close: boolean }

export type TokenEndpoint = (request: TokenRequest, exchange: Exchange) => Promise<TokenAnswer>

/** `POST /oauth/token`, step by step: form, grant, answer. Each step may be the last. */
export function createTokenEndpoint({ grants, bodyTimeout }: TokenEndpointDependencies): TokenEndpoint {
  return async (request, exchange) => {
    const form = await readFormRequest(exchange, bodyTimeout())
    if (form.kind === 'refused') return form
    const result = await exchangeGrant(form.parameters, grants, request.client)
    return result.kind === 'granted'
      ? { kind: 'reply', reply: tokenReply(result.tokens) }
      : { kind: 'refused', refusal: result.refusal, close: false }
  }
}

async function exchangeGrant(
  parameters: ReadonlyMap<string, string>,
  grants: ReadonlyMap<string, Grant>,
  client: string,
): Promise<GrantResult> {
  const grantType = parameters.get('grant_type')
  if (!grantType) return refuse(missingParameter('grant_type'))
  const grant = grants.get(grantType)
  if (grant === undefined) return refuse({ kind: 'unsupported-grant-type' })
  const value = parameters.get(grant.parameter)
  if (!value) return refuse(missingParameter(grant.parameter))
  return grant.exchange(value, client)
}

/** Exactly the four fields of the device's document (C4). */
function tokenReply(tokens: GrantedTokens): Reply {
  return jsonReply(200, {
    expires_in: tokens.expiresIn,
    token_type: 'Bearer',
    refresh_token: tokens.refreshToken,
    access_token: tokens.accessToken,
  })
}
