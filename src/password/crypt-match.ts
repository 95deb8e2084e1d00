import { timingSafeEqual } from 'node:crypto'
import { decodeBase64, hashSync } from 'bcryptjs'
import type { CryptCredential } from './credential.ts'
import { md5Crypt } from './md5-crypt.ts'
import { shaCrypt } from './sha-crypt.ts'

/** Whether `password` is the one that was hashed. Takes as long as the stored cost says: call it in a worker. */
export function cryptMatches(credential: CryptCredential, password: string): boolean {
  switch (credential.kind) {
    case 'bcrypt':
      return bcryptMatches(credential.hash, password)
    case 'md5-crypt': {
      const { magic, salt, digest } = credential
      return sameText(md5Crypt(Buffer.from(password), magic, salt), digest)
    }
    case 'sha-crypt': {
      const { algorithm, rounds, salt, digest } = credential
      return sameText(shaCrypt(Buffer.from(password), algorithm, rounds, salt), digest)
    }
  }
}

const DIGEST_TEXT = 31
const DIGEST_BYTES = 23

/**
 * Compares the digests alone. The whole text has spare bits in its base64, which some writers leave set; compared
 * as text, as `compareSync` does, such a hash never matches.
 */
function bcryptMatches(stored: string, password: string): boolean {
  const made = hashSync(password, stored.slice(0, -DIGEST_TEXT))
  return timingSafeEqual(bcryptDigest(made), bcryptDigest(stored))
}

function bcryptDigest(text: string): Buffer {
  return Buffer.from(decodeBase64(text.slice(-DIGEST_TEXT), DIGEST_BYTES))
}

function sameText(made: string, stored: string): boolean {
  return made.length === stored.length && timingSafeEqual(Buffer.from(made), Buffer.from(stored))
}
