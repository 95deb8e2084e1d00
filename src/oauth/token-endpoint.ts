import type { Exchange } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import { jsonReply, type Reply } from '../http/reply.ts'
import type { IssuedTokens } from '../tokens/token-contract.ts'
import { readFormRequest, required } from './form-request.ts'

export type GrantResult =
  | { readonly kind: 'granted'; readonly tokens: IssuedTokens }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** A grant type. A new one needs a module that creates a `GrantType`, and a line in `compose/state.ts`. */
export interface GrantType<Parameter extends string = string> {
  /** The value of `grant_type`. Passed on when tokens are issued, it is the `grant` label of the metric. */
  readonly name: string
  /** The other parameters that the form must have, none of them empty. */
  readonly parameters: readonly Parameter[]
  // A method, not a function property: its parameters are bivariant, so one list holds grants with different parameters.
  exchange(given: Readonly<Record<Parameter, string>>, client: string): GrantResult | Promise<GrantResult>
}

export function refuse(refusal: Refusal): Extract<GrantResult, { kind: 'refused' }> {
  return { kind: 'refused', refusal }
}

export interface TokenEndpointDependencies {
  /** The grant types, in the order in which a refusal lists them. */
  readonly grants: readonly GrantType[]
  /** The deadline of the request body (ms). */
  readonly bodyTimeout: () => number
}

/**
 * The result of a request to one of the sidecar's endpoints. `close`: body bytes are unread, so the connection closes. `grant`: that of
 * the tokens in the reply, for the record.
 */
type EndpointResult =
  | { readonly kind: 'reply'; readonly reply: Reply; readonly grant?: string | undefined }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly close: boolean }

export type OwnEndpointHandler = (exchange: Exchange) => Promise<EndpointResult>

/** The token endpoint, `POST /oauth/token`: reads the form, exchanges the grant, makes the response. A refusal ends this. */
export function createTokenEndpoint({ grants, bodyTimeout }: TokenEndpointDependencies): OwnEndpointHandler {
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

  return async (exchange) => {
    const form = await readFormRequest(exchange, bodyTimeout())
    if (form.kind === 'refused') return form
    const result = await exchangeGrant(form.parameters, exchange.client.address)
    return result.kind === 'granted'
      ? { kind: 'reply', reply: tokenReply(result.tokens), grant: result.tokens.grant }
      : { kind: 'refused', refusal: result.refusal, close: false }
  }
}

/** Exactly the four members that the device's API documents (C4). */
function tokenReply(tokens: IssuedTokens): Reply {
  return jsonReply(200, {
    expires_in: tokens.expiresIn,
    token_type: 'Bearer',
    refresh_token: tokens.refreshToken,
    access_token: tokens.accessToken,
  })
}
