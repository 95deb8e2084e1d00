import { randomBytes } from 'node:crypto'
import { LIFETIMES, PASSWORD } from './real-server.ts'

/** The token response (device API §2). */
export interface Tokens {
  readonly expires_in: number
  readonly token_type: 'Bearer'
  readonly refresh_token: string
  readonly access_token: string
}

export interface TokenMemory {
  /** Whether an access token is valid. */
  admits(accessToken: string): boolean
  /** The response to the parameters of a token request: tokens, or the error code of RFC 6749 §5.2. */
  grant(parameters: Readonly<Record<string, unknown>>): Tokens | { readonly error: string }
}

/** Tokens in memory, for servers whose parts bring a bearer check but no token endpoint. */
export function createTokenMemory(): TokenMemory {
  const access = new Map<string, number>()
  const refresh = new Map<string, number>()

  function issue(refreshToken: string): Tokens {
    const accessToken = randomBytes(32).toString('base64url')
    access.set(accessToken, Date.now() + LIFETIMES.access * 1000)
    return {
      expires_in: LIFETIMES.access,
      token_type: 'Bearer',
      refresh_token: refreshToken,
      access_token: accessToken,
    }
  }

  function login(password: unknown): Tokens | { readonly error: string } {
    if (password !== PASSWORD) return { error: 'invalid_grant' }
    const token = randomBytes(32).toString('base64url')
    refresh.set(token, Date.now() + LIFETIMES.refresh * 1000)
    return issue(token)
  }

  return {
    admits: (token) => Date.now() < (access.get(token) ?? 0),
    grant(parameters) {
      const { grant_type: type, password, refresh_token: token } = parameters
      const repeated = Object.values(parameters).some((value) => typeof value !== 'string')
      if (repeated || !type) return { error: 'invalid_request' }
      if (type === 'password') return password ? login(password) : { error: 'invalid_request' }
      if (type !== 'refresh_token') return { error: 'unsupported_grant_type' }
      if (typeof token !== 'string' || token === '') return { error: 'invalid_request' }
      return Date.now() < (refresh.get(token) ?? 0) ? issue(token) : { error: 'invalid_grant' }
    },
  }
}
