import { hash, randomBytes } from 'node:crypto'
import type { Lifetimes, TokenKind } from './grant-rules.ts'

export interface IssuedTokens {
  /** The id of their grant. */
  readonly grant: string
  readonly accessToken: string
  readonly refreshToken: string
  /** Whole seconds. */
  readonly expiresIn: number
}

/** A source of random bytes, such as `crypto.randomBytes`. */
export type RandomBytes = (size: number) => Buffer

/** The base64url SHA-256 of a token, the form in which stores hold it. Only responses for a retry hold tokens in plain text, in memory. */
export type Digest = string

/** The length of a token in characters. */
const TOKEN_LENGTH = 43

/** A new opaque token: 256 bits in base64url, 43 characters (C4). */
export function mintToken(random: RandomBytes = randomBytes): string {
  return random(32).toString('base64url')
}

/**
 * An id for a grant; not a secret. It is in hex because operators type it after `--grant`, and hex never starts with a dash.
 *
 * @param name of the password; the id begins with it (see `nameOfGrant`)
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
 * The digest by which stores look up a token. The look-up compares digests, which a client cannot choose, so its timing tells an attacker
 * nothing. A plain hash is enough, because 256 random bits cannot be guessed.
 */
export function digestToken(token: string): Digest {
  return hash('sha256', token, 'base64url')
}

/** A token that a store adds to a grant. Its `lifetime` (ms) begins when the store adds it. */
export interface NewToken {
  readonly kind: TokenKind
  readonly digest: Digest
  readonly lifetime: number
}

/** A token response for a client, and the tokens that the store adds for it, in this order. */
interface Minted {
  readonly response: Omit<IssuedTokens, 'grant'>
  readonly added: readonly NewToken[]
}

/**
 * A new access token, and a new refresh token unless one is `kept`.
 *
 * @param kept the presented refresh token (C6), which stays, with its expiry
 */
export function mintTokens(
  { accessLifetime, refreshLifetime }: Lifetimes,
  random: RandomBytes,
  kept?: string,
): Minted {
  const [accessToken, refreshToken] = [mintToken(random), kept ?? mintToken(random)]
  const added: NewToken[] = [{ kind: 'access', digest: digestToken(accessToken), lifetime: accessLifetime }]
  if (kept === undefined)
    added.unshift({ kind: 'refresh', digest: digestToken(refreshToken), lifetime: refreshLifetime })
  return { response: { accessToken, refreshToken, expiresIn: Math.floor(accessLifetime / 1000) }, added }
}
