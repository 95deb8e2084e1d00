import { randomBytes } from 'node:crypto'
import { argon2Available, derive } from './derivation.ts'

/** OWASP's first choice for argon2id: 19 MiB, two passes, one lane; 16 bytes of salt, 32 of hash. */
const PARAMETERS = { kind: 'argon2id', memory: 19_456, passes: 2, parallelism: 1 } as const
const SALT_BYTES = 16
const TAG_BYTES = 32

/** A line for the password file: argon2id in the PHC string format. Fails where Node has no argon2. */
export async function hashPassword(password: string): Promise<string> {
  if (!argon2Available()) throw new Error('this Node.js has no argon2 (it came with 24.7 and OpenSSL 3.2)')
  const salt = randomBytes(SALT_BYTES)
  const hash = await derive({ ...PARAMETERS, salt, tag: new Uint8Array(TAG_BYTES) }, password)
  const { memory, passes, parallelism } = PARAMETERS
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(salt)}$${unpadded(hash)}`
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}
