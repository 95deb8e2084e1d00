import { randomBytes } from 'node:crypto'
import type { Now } from './windows.ts'

export interface TokenRules {
  /** A refresh replaces the refresh token, instead of keeping it. */
  readonly rotate: boolean
  /** How long a spent refresh token gets the same tokens again (ms). After that it ends the login. */
  readonly grace: number
}

/** The tokens of a login or a refresh. */
export interface Issued {
  readonly accessToken: string
  readonly refreshToken: string
}

/** The lifetime of an access token that the server states (s). No run lives to see one end. */
export const ACCESS_LIFETIME = 3600

interface Login {
  revoked: boolean
}

interface RefreshToken {
  readonly login: Login
  /** Set once it has been replaced. */
  spent: { readonly at: number; readonly issued: Issued } | undefined
}

/** The live tokens of the server, in memory. */
export interface Tokens {
  login(): Issued
  /** Undefined if the refresh token is not valid. */
  refresh(refreshToken: string): Issued | undefined
  /** Whether the API lets this access token through. */
  admits(accessToken: string): boolean
  /** The same, whatever the case of its letters. */
  admitsInOtherCase(accessToken: string): boolean
  /** The API refuses this access token from now on. */
  end(accessToken: string): void
  /** Ends the login that either token belongs to. */
  revoke(token: string): void
  /** Whether it is a refresh token of this server. */
  isRefreshToken(token: string): boolean
}

/** 256 random bits. */
export function randomToken(): string {
  return randomBytes(32).toString('base64url')
}

/** An empty store. */
export function createTokens({ rotate, grace }: TokenRules, now: Now): Tokens {
  const access = new Map<string, Login>()
  const refreshing = new Map<string, RefreshToken>()

  function issueAccess(login: Login): string {
    const accessToken = randomToken()
    access.set(accessToken, login)
    return accessToken
  }

  function issueRefresh(login: Login): string {
    const refreshToken = randomToken()
    refreshing.set(refreshToken, { login, spent: undefined })
    return refreshToken
  }

  function admits(accessToken: string): boolean {
    return access.get(accessToken)?.revoked === false
  }

  return {
    login() {
      const login = { revoked: false }
      return { accessToken: issueAccess(login), refreshToken: issueRefresh(login) }
    },
    refresh(refreshToken) {
      const known = refreshing.get(refreshToken)
      if (known === undefined || known.login.revoked) return undefined
      if (known.spent !== undefined) {
        if (now() < known.spent.at + grace) return known.spent.issued
        known.login.revoked = true
        return undefined
      }
      const accessToken = issueAccess(known.login)
      const issued = { accessToken, refreshToken: rotate ? issueRefresh(known.login) : refreshToken }
      if (rotate) known.spent = { at: now(), issued }
      return issued
    },
    admits,
    admitsInOtherCase: (accessToken) =>
      [...access.keys()].some((each) => each.toLowerCase() === accessToken.toLowerCase() && admits(each)),
    end: (accessToken) => {
      access.delete(accessToken)
    },
    revoke(token) {
      const login = access.get(token) ?? refreshing.get(token)?.login
      if (login !== undefined) login.revoked = true
    },
    isRefreshToken: (token) => refreshing.has(token),
  }
}
