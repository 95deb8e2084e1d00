import { argon2Available, derive } from './derivation.ts'

/** The smallest of the five that OWASP holds equal: 7 MiB, five passes. 15 ms, where an scrypt worth it takes 270 ms. */
const ARGON2ID = { kind: 'argon2id', memory: 7_168, passes: 5, parallelism: 1 } as const

/** For a Node without argon2. With one that has it the password is then taken for another: tokens go, as is safe. */
const SCRYPT = { kind: 'scrypt', cost: 2 ** 15, blockSize: 8, parallelism: 1 } as const

/**
 * A value to keep on disk that tells, after a restart, whether the password is still the same. What can be guessed of
 * it costs a derivation in 7 MiB for each guess. `salt`: 16 random bytes, kept beside it.
 *
 * @param line the password, or what its file holds in the place of it
 */
export async function fingerprintOf(line: string, salt: Uint8Array): Promise<string> {
  const parameters = argon2Available() ? ARGON2ID : SCRYPT
  const derived = await derive({ ...parameters, salt, tag: new Uint8Array(32) }, `postern ${line}`)
  return derived.toString('base64url')
}
