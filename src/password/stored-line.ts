import { createHash } from 'node:crypto'
import { type Parsed, understood, unusable } from './credential.ts'
import { parseApacheSha1, parseBcrypt, parseMd5Crypt, parseShaCrypt } from './crypt-format.ts'
import { parseArgon2id, parseScrypt } from './phc-format.ts'

const SUPPORTED =
  'supported are $argon2id$, $scrypt$, bcrypt ($2a$, $2b$, $2y$), crypt(3) $1$, $5$ and $6$, $apr1$ and {SHA}'

const PARSERS: ReadonlyMap<string, (line: string) => Parsed> = new Map([
  ['argon2id', parseArgon2id],
  ['scrypt', parseScrypt],
  ['2a', parseBcrypt],
  ['2b', parseBcrypt],
  ['2y', parseBcrypt],
  ['1', parseMd5Crypt],
  ['apr1', parseMd5Crypt],
  ['5', parseShaCrypt],
  ['6', parseShaCrypt],
])

/** `$id$…`, also `$md5,rounds=…$` of Solaris; and `{SCHEME}…`, as LDAP and Apache write it. */
const MODULAR = /^\$([\w,=.-]+)\$/
const SCHEME = /^\{[A-Z0-9][A-Z0-9./-]*\}/

/**
 * Understands one stored credential. A line that looks like a hash of a kind that we can't verify is refused:
 * taken as a plain password, it would lock everyone out and make the hash itself the password.
 * `plainAllowed` is false where only hashes may stand, as in htpasswd and shadow files.
 */
export function parseStoredLine(line: string, plainAllowed: boolean): Parsed {
  if (line === '') return unusable('it is empty, and an empty password is never accepted')
  if (line.includes('\0')) return unusable('it contains a NUL byte')
  if (!plainAllowed && /^[!*]/.test(line)) return unusable('the account is locked')
  const identifier = MODULAR.exec(line)?.[1]
  if (identifier !== undefined) {
    const parse = PARSERS.get(identifier)
    return parse === undefined ? unusable(`it is a hash of an unsupported kind; ${SUPPORTED}`) : parse(line)
  }
  if (line.startsWith('{SHA}')) return parseApacheSha1(line)
  if (SCHEME.test(line)) return unusable(`it is a hash of an unsupported kind; ${SUPPORTED}`)
  if (!plainAllowed) return unusable(`it is not a hash that can be verified; ${SUPPORTED}`)
  return understood({ kind: 'plain', digest: createHash('sha256').update(line).digest() })
}
