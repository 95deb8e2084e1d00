import { hash, randomBytes } from 'node:crypto'

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
