// The default import: a named import that an old Node lacks would keep the whole program from starting.
import crypto, { randomBytes } from 'node:crypto'

/** The parameters of a memory-hard function, and what it gave for the stored password. */
export type DerivedCredential =
  | {
      readonly kind: 'argon2id'
      /** KiB. */
      readonly memory: number
      readonly passes: number
      readonly parallelism: number
      readonly salt: Uint8Array
      readonly tag: Uint8Array
    }
  | {
      readonly kind: 'scrypt'
      readonly cost: number
      readonly blockSize: number
      readonly parallelism: number
      readonly salt: Uint8Array
      readonly tag: Uint8Array
    }

/** Whether this Node has argon2: 24.7 or later, linked with an OpenSSL that supports it. */
export function argon2Available(): boolean {
  if (typeof crypto.argon2Sync !== 'function') return false
  try {
    crypto.argon2Sync('argon2id', {
      message: '',
      nonce: Buffer.alloc(8),
      parallelism: 1,
      tagLength: 4,
      memory: 8,
      passes: 1,
    })
    return true
  } catch {
    return false
  }
}

/** The key derived from `password` with these parameters, as long as `tag`. Runs in libuv's thread pool. */
export function derive(parameters: DerivedCredential, password: string): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const done = (error: Error | null, derived: Buffer): void => {
    if (error === null) resolve(derived)
    else reject(error)
  }
  if (parameters.kind === 'argon2id') {
    const { memory, passes, parallelism, salt, tag } = parameters
    const options = { message: password, nonce: salt, parallelism, tagLength: tag.length, memory, passes }
    crypto.argon2('argon2id', options, done)
  } else {
    const { cost, blockSize, parallelism, salt, tag } = parameters
    // OpenSSL counts a little more than the table itself. The parameters themselves are bounded when they are parsed.
    const maxmem = 128 * blockSize * (cost + parallelism + 4) + 65_536
    crypto.scrypt(password, salt, tag.length, { cost, blockSize, parallelization: parallelism, maxmem }, done)
  }
  return promise
}

/** OWASP's first choice for argon2id: 19 MiB, two passes, one lane. */
const HASH_PARAMETERS = { kind: 'argon2id', memory: 19_456, passes: 2, parallelism: 1 } as const
const SALT_BYTES = 16
const TAG_BYTES = 32

/** A line for the password file: argon2id in the PHC string format. Rejects where Node has no argon2. */
export async function hashPassword(password: string): Promise<string> {
  if (!argon2Available()) throw new Error(NO_ARGON2)
  const salt = randomBytes(SALT_BYTES)
  const hash = await derive({ ...HASH_PARAMETERS, salt, tag: new Uint8Array(TAG_BYTES) }, password)
  const { memory, passes, parallelism } = HASH_PARAMETERS
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(salt)}$${unpadded(hash)}`
}

/** The reason where a hash needs argon2 and this Node has none. */
export const NO_ARGON2 = 'this Node.js has no argon2 (it came with 24.7 and OpenSSL 3.2)'

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}

/** The cheapest of OWASP's five equivalent choices: 7 MiB, five passes. Takes 15 ms; scrypt of that strength takes 270 ms. */
const FINGERPRINT_ARGON2ID = { kind: 'argon2id', memory: 7_168, passes: 5, parallelism: 1 } as const

/** For a Node without argon2. A later Node with argon2 sees another fingerprint, so it revokes the tokens: the safe side. */
const FINGERPRINT_SCRYPT = { kind: 'scrypt', cost: 2 ** 15, blockSize: 8, parallelism: 1 } as const

/**
 * A value to keep on disk that shows, after a restart, whether the password is still the same. Each guess of the password
 * from it costs an attacker a derivation in 7 MiB. `salt`: 16 random bytes, kept beside it.
 *
 * @param line the password, or the hash that its file holds instead
 */
export async function fingerprintOf(line: string, salt: Uint8Array): Promise<string> {
  const parameters = argon2Available() ? FINGERPRINT_ARGON2ID : FINGERPRINT_SCRYPT
  const derived = await derive({ ...parameters, salt, tag: new Uint8Array(TAG_BYTES) }, `postern ${line}`)
  return derived.toString('base64url')
}
