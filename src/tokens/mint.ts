import { hash, randomBytes } from 'node:crypto'
import type { Lifetimes, TokenKind } from './grant-rules.ts'
import type { IssuedTokens } from './state.ts'

/** A source of random bytes, such as `crypto.randomBytes`. */
export type RandomBytes = (size: number) => Buffer

/** The base64url SHA-256 of a token. Memory and disk hold only this form. */
export type Digest = string

/** The length of a token in characters. */
const TOKEN_LENGTH = 43

/** A new opaque token: 256 bits in base64url, 43 characters (C4). */
export function mintToken(random: RandomBytes = randomBytes): string {
  return random(32).toString('base64url')
}

/**
 * An id for a grant. It is no secret. It is hex because operators type it after `--grant`: hex never starts with a dash.
 *
 * @param name of the password; it becomes the beginning of the id (see `nameOfGrant`)
 */
export function mintGrantId(random: RandomBytes, name: string): string {
  const id = random(8).toString('hex')
  return name === '' ? id : `${name}.${id}`
}

/** Whether a string has the length of a token. Any other string is unknown and is not hashed. */
export function looksMinted(token: string): boolean {
  return token.length === TOKEN_LENGTH
}

/**
 * The lookup by digest prevents a timing attack: it compares hashes, which a client cannot choose. A plain hash is enough,
 * because 256 random bits cannot be guessed.
 */
export function digestToken(token: string): Digest {
  return hash('sha256', token, 'base64url')
}

/** A token that a store adds to a grant. It has its lifetime (ms) from that moment. */
export interface NewToken {
  readonly kind: TokenKind
  readonly digest: Digest
  readonly lifetime: number
}

/** Tokens for a client, and what the store adds for them, in this order. */
export interface Minted {
  readonly response: Omit<IssuedTokens, 'grant'>
  readonly added: readonly NewToken[]
}

/** The tokens of a new grant. */
export function mintPair({ accessLifetime, refreshLifetime }: Lifetimes, random: RandomBytes): Minted {
  const [accessToken, refreshToken] = [mintToken(random), mintToken(random)]
  return {
    response: { accessToken, refreshToken, expiresIn: Math.floor(accessLifetime / 1000) },
    added: [
      { kind: 'access', digest: digestToken(accessToken), lifetime: accessLifetime },
      { kind: 'refresh', digest: digestToken(refreshToken), lifetime: refreshLifetime },
    ],
  }
}

/**
 * The tokens for a presented refresh token (C6).
 *
 * @param rotates whether another refresh token takes the place of the presented one, which keeps its expiry otherwise
 */
export function mintExchange(
  presented: string,
  rotates: boolean,
  { accessLifetime, refreshLifetime }: Lifetimes,
  random: RandomBytes,
): Minted {
  const accessToken = mintToken(random)
  const refreshToken = rotates ? mintToken(random) : presented
  const access: NewToken = { kind: 'access', digest: digestToken(accessToken), lifetime: accessLifetime }
  return {
    response: { accessToken, refreshToken, expiresIn: Math.floor(accessLifetime / 1000) },
    added: rotates
      ? [{ kind: 'refresh', digest: digestToken(refreshToken), lifetime: refreshLifetime }, access]
      : [access],
  }
}
