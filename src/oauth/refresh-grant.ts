import { type Grant, type GrantedTokens, refuse } from './grant.ts'

/** A refresh token for a new access token (RFC 6749 §6). Which way it failed, the answer does not tell. */
export function createRefreshGrant(refresh: (refreshToken: string) => GrantedTokens | undefined): Grant {
  return {
    parameter: 'refresh_token',
    exchange(refreshToken) {
      const tokens = refresh(refreshToken)
      return tokens === undefined
        ? refuse({ kind: 'invalid-grant', description: 'The refresh token is not valid.' })
        : { kind: 'granted', tokens }
    },
  }
}
