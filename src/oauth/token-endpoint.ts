import type { Exchange } from '../http/exchange.ts'
import { type Form, required } from '../http/form.ts'
import { secondsToReset } from '../http/limit-fields.ts'
import { jsonResponse, type LocalResponse, type Refusal, type UpstreamFailure } from '../http/refusal.ts'
import type { Clock } from '../system/clock.ts'
import type { LogIn } from '../tokens/issuing.ts'
import type { IssuedTokens } from '../tokens/mint.ts'
import type { Tokens } from '../tokens/token-store.ts'
import { type FormSettings, readForm } from './form-request.ts'

/** A grant type. A new one needs a function that creates a `GrantType`, and a line in `compose/open-state.ts`. */
export interface GrantType {
  /** The value of `grant_type`, and the `grant` label of the metric of issued tokens. */
  readonly name: string
  /** Takes the parameters of the grant from the form: see `required`. */
  exchange(form: Form, request: Exchange): Promise<IssuedTokens | Refusal>
}

/** The result of a request to one of the sidecar's own endpoints. `grant`: the grant of the tokens in the response, for the record. */
type EndpointResult = { readonly response: LocalResponse; readonly grant?: string | undefined } | Refusal

export type OwnEndpointHandler = (exchange: Exchange) => Promise<EndpointResult>

/**
 * The token endpoint, `POST /oauth/token`: reads the form, exchanges the grant, makes the response. The first refusal ends that.
 *
 * @param grants in the order in which a refusal lists them
 */
export function createTokenEndpoint(
  grants: readonly GrantType[],
  settings: FormSettings,
  clock: Pick<Clock, 'after'>,
): OwnEndpointHandler {
  const unsupported: Refusal = {
    kind: 'unsupported-grant-type',
    description: `The grant_type must be ${grants.map(({ name }) => `"${name}"`).join(' or ')}.`,
  }
  return async (exchange) => {
    const form = await readForm(exchange, settings, clock)
    if ('kind' in form) return form
    const type = required(form, 'grant_type')
    if (typeof type !== 'string') return type
    const grantType = grants.find(({ name }) => name === type)
    if (grantType === undefined) return unsupported
    const issued = await grantType.exchange(form, exchange)
    if ('kind' in issued) return issued
    const { grant, expiresIn, refreshToken, accessToken } = issued
    // Exactly the four members that the device's API documents (C4).
    const members = {
      expires_in: expiresIn,
      token_type: 'Bearer',
      refresh_token: refreshToken,
      access_token: accessToken,
    }
    return { response: jsonResponse(200, members), grant }
  }
}

const PASSWORD = 'password'

const NOT_RIGHT = { kind: 'invalid-grant', description: 'The password is not right.' } as const

/** The `Retry-After` (seconds) if too many passwords wait. */
const RETRY_AFTER_OVERLOAD = 1

/**
 * Exchanges a password for a pair of tokens (RFC 6749 §4.3). The documented API has no user names, so `username` may be missing or have any
 * value (C3). The right password of another name gets the same response as a wrong one.
 */
export function createPasswordGrant(
  logIn: LogIn,
  onWrongPassword: () => void,
  onUnavailable: (failure: UpstreamFailure) => void,
): GrantType {
  return {
    name: PASSWORD,
    async exchange(form, request) {
      const password = required(form, PASSWORD)
      if (typeof password !== 'string') return password
      const result = await logIn(password, request, PASSWORD, form.get('username'))
      switch (result) {
        case 'wrong':
          onWrongPassword()
          return NOT_RIGHT
        case 'other-name':
          onWrongPassword()
          return { ...NOT_RIGHT, cause: result }
        case 'overloaded':
          return { kind: 'logins-overloaded', retryAfter: RETRY_AFTER_OVERLOAD }
        case 'unchecked':
          return { kind: 'password-unchecked' }
        case 'unavailable':
          return { kind: 'store-unavailable' }
      }
      if ('accessToken' in result) return result
      if ('slowedFor' in result)
        return { kind: 'wrong-passwords', retryAfter: secondsToReset(result.slowedFor) }
      onUnavailable(result.unavailable)
      return { kind: 'upstream', failure: result.unavailable }
    },
  }
}

/**
 * Exchanges a refresh token for a new access token (RFC 6749 §6). The refusal does not say why the token is invalid.
 *
 * @param onRefreshed called with the request and the id of its grant
 */
export function createRefreshGrant(
  refresh: Tokens['refresh'],
  onRefreshed: (request: Exchange, grant: string) => void,
): GrantType {
  return {
    name: 'refresh_token',
    async exchange(form, request) {
      const token = required(form, 'refresh_token')
      if (typeof token !== 'string') return token
      const issued = await refresh(token)
      if (issued === 'unavailable') return { kind: 'store-unavailable' }
      if (issued !== undefined) onRefreshed(request, issued.grant)
      return issued ?? { kind: 'invalid-grant', description: 'The refresh token is not valid.' }
    },
  }
}

/**
 * The revocation endpoint (RFC 7009). A token authorizes its own revocation, which revokes the whole grant (§2.1). The response for an
 * unknown token is 200, too (§2.2). `token_type_hint` is ignored, because one look-up finds tokens of both kinds.
 */
export function createRevocationEndpoint(
  revoke: Tokens['revoke'],
  settings: FormSettings,
  clock: Pick<Clock, 'after'>,
): OwnEndpointHandler {
  return async (exchange) => {
    const form = await readForm(exchange, settings, clock)
    if ('kind' in form) return form
    const token = required(form, 'token')
    if (typeof token !== 'string') return token
    const revoked = await revoke({ token }, 'client')
    return revoked === 'unavailable' ? { kind: 'store-unavailable' } : { response: jsonResponse(200, {}) }
  }
}
