import type { Tokens } from '../tokens/token-contract.ts'
import { type GrantType, refuse } from './token-endpoint.ts'

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
