import type { Client } from '../http/admission.ts'
import type { Exchange } from '../http/exchange.ts'
import { jsonReply, type Reply, type UpstreamFailure } from '../http/refusal.ts'
import type { IssuedTokens, LogIn, Tokens } from '../tokens/state.ts'
import { type Refused, readFormRequest, refuse, required } from './form-request.ts'

export type GrantResult = { readonly kind: 'granted'; readonly tokens: IssuedTokens } | Refused

/** A grant type. A new one needs a function that creates a `GrantType`, and a line in `compose/state.ts`. */
export interface GrantType<Parameter extends string = string> {
  /** The value of `grant_type`. Passed on when tokens are issued, it is the `grant` label of the metric. */
  readonly name: string
  /** The other parameters that the form must have, none of them empty. */
  readonly parameters: readonly Parameter[]
  // A method, not a function property: its parameters are bivariant, so one list holds grants with different parameters.
  exchange(given: Readonly<Record<Parameter, string>>, client: Client): GrantResult | Promise<GrantResult>
}

/** The deadline of a request body (ms). A reload replaces `config`. */
interface EndpointSettings {
  readonly config: { readonly listen: { readonly bodyTimeout: number } }
}

/** The result of a request to one of the sidecar's endpoints. `grant`: that of the tokens in the reply, for the record. */
type EndpointResult =
  | { readonly kind: 'reply'; readonly reply: Reply; readonly grant?: string | undefined }
  | Refused

export type OwnEndpointHandler = (exchange: Exchange) => Promise<EndpointResult>

/**
 * The token endpoint, `POST /oauth/token`: reads the form, exchanges the grant, makes the response. A refusal ends this.
 *
 * @param grants in the order in which a refusal lists them
 */
export function createTokenEndpoint(
  grants: readonly GrantType[],
  settings: EndpointSettings,
): OwnEndpointHandler {
  const unsupported = refuse({
    kind: 'unsupported-grant-type',
    description: `The grant_type must be ${grants.map(({ name }) => `"${name}"`).join(' or ')}.`,
  })

  async function exchangeGrant(
    parameters: ReadonlyMap<string, string>,
    client: Client,
  ): Promise<GrantResult> {
    const asked = required(parameters, ['grant_type'])
    if (asked.kind === 'refused') return asked
    const grant = grants.find(({ name }) => name === asked.values.grant_type)
    if (grant === undefined) return unsupported
    const given = required(parameters, grant.parameters)
    return given.kind === 'refused' ? given : grant.exchange(given.values, client)
  }

  return async (exchange) => {
    const form = await readFormRequest(exchange, settings.config.listen.bodyTimeout)
    if (form.kind === 'refused') return form
    const result = await exchangeGrant(form.parameters, exchange.client)
    if (result.kind === 'refused') return result
    const { grant, expiresIn, refreshToken, accessToken } = result.tokens
    // Exactly the four members that the device's API documents (C4).
    const members = {
      expires_in: expiresIn,
      token_type: 'Bearer',
      refresh_token: refreshToken,
      access_token: accessToken,
    }
    return { kind: 'reply', reply: jsonReply(200, members), grant }
  }
}

export interface PasswordGrantDependencies {
  readonly logIn: LogIn
  readonly onWrongPassword: () => void
  readonly onUnavailable: (failure: UpstreamFailure) => void
}

const PASSWORD = 'password'

/** The `Retry-After` (seconds) if too many passwords are being checked. */
const RETRY_AFTER_OVERLOAD = 1

/** Exchanges the admin password of the device for a pair of tokens (RFC 6749 §4.3). The API has no user names. */
export function createPasswordGrant({
  logIn,
  onWrongPassword,
  onUnavailable,
}: PasswordGrantDependencies): GrantType<'password'> {
  return {
    name: PASSWORD,
    parameters: ['password'],
    async exchange({ password }, client) {
      const result = await logIn(password, client, PASSWORD)
      switch (result) {
        case 'wrong':
          onWrongPassword()
          return refuse({ kind: 'invalid-grant', description: 'The password is not right.' })
        case 'overloaded':
          return refuse({ kind: 'overloaded', retryAfter: RETRY_AFTER_OVERLOAD })
        case 'unavailable':
          return refuse({ kind: 'store-unavailable' })
      }
      if ('accessToken' in result) return { kind: 'granted', tokens: result }
      if ('slowedFor' in result)
        return refuse({ kind: 'wrong-passwords', retryAfter: Math.ceil(result.slowedFor / 1000) })
      onUnavailable(result.unavailable)
      return refuse({ kind: 'upstream', failure: result.unavailable })
    },
  }
}

/** Exchanges a refresh token for a new access token (RFC 6749 §6). The refusal does not say why the token is invalid. */
export function createRefreshGrant(refresh: Tokens['refresh']): GrantType<'refresh_token'> {
  return {
    name: 'refresh_token',
    parameters: ['refresh_token'],
    async exchange({ refresh_token: refreshToken }) {
      const tokens = await refresh(refreshToken)
      if (tokens === 'unavailable') return refuse({ kind: 'store-unavailable' })
      return tokens === undefined
        ? refuse({ kind: 'invalid-grant', description: 'The refresh token is not valid.' })
        : { kind: 'granted', tokens }
    },
  }
}

/**
 * The revocation endpoint (RFC 7009). A token authorizes its own revocation, which revokes the whole grant (§2.1). The response
 * for an unknown token is 200 too (§2.2). `token_type_hint` is ignored, because one lookup finds tokens of both kinds.
 */
export function createRevocationEndpoint(
  revoke: Tokens['revoke'],
  settings: EndpointSettings,
): OwnEndpointHandler {
  return async (exchange) => {
    const form = await readFormRequest(exchange, settings.config.listen.bodyTimeout)
    if (form.kind === 'refused') return form
    const given = required(form.parameters, ['token'])
    if (given.kind === 'refused') return given
    const revoked = await revoke({ token: given.values.token }, 'client')
    if (revoked === 'unavailable') return refuse({ kind: 'store-unavailable' })
    return { kind: 'reply', reply: jsonReply(200, {}) }
  }
}
