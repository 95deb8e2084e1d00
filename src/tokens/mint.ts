import { hash } from 'node:crypto'

/** A source of random bytes; `crypto.randomBytes` outside tests. */
export type RandomBytes = (size: number) => Buffer

/** The base64url SHA-256 of a token: the only form of it that is ever kept, in memory or on disk. */
export type Digest = string

/** Characters of a token. */
const MINTED = 43

/** A new opaque token: 256 bits in base64url, 43 characters (C4). */
export function mintToken(random: RandomBytes): string {
  return random(32).toString('base64url')
}

/** A name for a grant: not a secret, and typed by people after `--grant`, so hex, which never starts with a dash. */
export function mintGrantId(random: RandomBytes): string {
  return random(8).toString('hex')
}

/** Whether a string is as long as a token of ours. Anything else is unknown, and not worth the hash. */
export function looksMinted(token: string): boolean {
  return token.length === MINTED
}

/**
 * Looking tokens up by digest also keeps the lookup from leaking them by its timing: what is compared is
 * a hash that the caller cannot steer. A plain hash is enough, because 256 random bits cannot be guessed.
 */
export function digestToken(token: string): Digest {
  return hash('sha256', token, 'base64url')
}
