import crypto, { randomBytes, type ScryptOptions } from 'node:crypto'
import { promisify } from 'node:util'

/** The parameters of a memory-hard function, and `tag`, its output for the stored password. `memory` in KiB. */
export type DerivedCredential = {
  readonly parallelism: number
  readonly salt: Uint8Array
  readonly tag: Uint8Array
} & (
  | { readonly kind: 'argon2id'; readonly memory: number; readonly passes: number }
  | { readonly kind: 'scrypt'; readonly cost: number; readonly blockSize: number }
)

/** The memory that a derivation takes (bytes). */
export function memoryFor(parameters: DerivedCredential): number {
  if (parameters.kind === 'argon2id') return parameters.memory * 1024
  return 128 * parameters.blockSize * (parameters.cost + parameters.parallelism)
}

/** The key derived from `password` with these parameters, as long as `tag`. Runs in libuv's thread pool. */
export function derive(parameters: DerivedCredential, password: string): Promise<Buffer> {
  const { parallelism, salt, tag } = parameters
  if (parameters.kind === 'argon2id') {
    const { memory, passes } = parameters
    const options = { message: password, nonce: salt, parallelism, tagLength: tag.length, memory, passes }
    return promisify(crypto.argon2)('argon2id', options)
  }
  const { cost, blockSize } = parameters
  // OpenSSL counts a little more than the table itself. The parser of the stored line has bounded the parameters.
  const maxmem = 128 * blockSize * (cost + parallelism + 4) + 65_536
  const options = { cost, blockSize, parallelization: parallelism, maxmem }
  const scrypt = promisify<string, Uint8Array, number, ScryptOptions, Buffer>(crypto.scrypt)
  return scrypt(password, salt, tag.length, options)
}

/** OWASP's first choice for argon2id, 19 MiB and two passes, and the cheapest of the others that it calls equivalent. `memory` in KiB. */
export const HASH_COSTS = {
  usual: { kind: 'argon2id', memory: 19_456, passes: 2, parallelism: 1 },
  board: { kind: 'argon2id', memory: 7_168, passes: 5, parallelism: 1 },
} as const

type HashCost = (typeof HASH_COSTS)[keyof typeof HASH_COSTS]

const SALT_BYTES = 16
const TAG_BYTES = 32

/** Hashes a password into a line for the password file: argon2id in the PHC string format. */
export async function hashPassword(password: string, cost: HashCost = HASH_COSTS.usual): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  const hash = await derive({ ...cost, salt, tag: new Uint8Array(TAG_BYTES) }, password)
  const { memory, passes, parallelism } = cost
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(salt)}$${unpadded(hash)}`
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}

/**
 * A fingerprint of the password to keep on disk: after a restart it shows whether the password is still the same. Each guess of the
 * password costs an attacker a derivation in 7 MiB, which takes 15 ms; scrypt of that strength takes 270 ms. `salt`: 16 random bytes, kept
 * beside the fingerprint.
 *
 * @param line the line of the file: the password, or its hash
 */
export async function fingerprintOf(line: string, salt: Uint8Array): Promise<string> {
  const parameters = { ...HASH_COSTS.board, salt, tag: new Uint8Array(TAG_BYTES) }
  return (await derive(parameters, `postern ${line}`)).toString('base64url')
}
