import { hash } from 'node:crypto'
import type { DerivedCredential } from './key-derivation.ts'

/** A parsed stored password: everything that a verification needs, checked and bounded. */
export type Credential = DigestCredential | DerivedCredential | CryptCredential

/** Verified in microseconds, on the event loop. `plain`: the SHA-256 of the password. */
export interface DigestCredential {
  readonly kind: 'plain' | 'sha1'
  readonly digest: Uint8Array
}

/** A hash that is computed in JavaScript. That would block the event loop, so a worker verifies it. */
export type CryptCredential =
  | { readonly kind: 'bcrypt'; readonly hash: string }
  | ({ readonly salt: string; readonly digest: string } & (
      | { readonly kind: 'md5-crypt'; readonly magic: '$1$' | '$apr1$' }
      | { readonly kind: 'sha-crypt'; readonly algorithm: 'sha256' | 'sha512'; readonly rounds: number }
    ))

/** The credential of a stored line, or why the line is unusable. The reason may be logged: it never quotes the line. */
type StoredLine = Credential | string

const SUPPORTED =
  'supported are $argon2id$, $scrypt$, bcrypt ($2a$, $2b$, $2y$), crypt(3) $1$, $5$ and $6$, $apr1$ and {SHA}'

const PARSERS: ReadonlyMap<string, (line: string) => StoredLine> = new Map([
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

/** `$id$…`, also Solaris' `$md5,rounds=…$`; and `{SCHEME}…`, as LDAP and Apache write it. */
const MODULAR = /^\$([\w,=.-]+)\$/
const SCHEME = /^\{[A-Z0-9][A-Z0-9./-]*\}/

/** Whether a line has the form of a hash, supported or not. Such a line is never taken for a plain password. */
export function isHash(line: string): boolean {
  return MODULAR.test(line) || SCHEME.test(line)
}

/** The line without a quote before it: a quote of a shell, of YAML, or of a word processor. */
function unquoted(line: string): string {
  return line.replace(/^\s*["'`\u2018-\u201f\u00ab]\s*/, '')
}

/**
 * Parses one stored password. A hash of an unsupported kind is unusable: if it were taken for a plain password, every login would fail, and
 * the text of the hash itself would be the password. `plainAllowed` is false for htpasswd and shadow files, which hold hashes only.
 */
export function parseStoredLine(line: string, plainAllowed: boolean): StoredLine {
  if (line === '') return 'it is empty, and an empty password is never accepted'
  if (line.includes('\0')) return 'it contains a NUL byte'
  if (line.trim() !== line && isHash(line.trim())) return 'a blank stands before or behind the hash'
  if (isHash(unquoted(line)) && !isHash(line))
    return 'quotes stand around the hash, and would be a part of it; remove them'
  if (!plainAllowed && /^[!*]/.test(line)) return 'the account is locked'
  const identifier = MODULAR.exec(line)?.[1]
  if (identifier !== undefined) {
    const parse = PARSERS.get(identifier)
    return parse === undefined ? `it is a hash of an unsupported kind; ${SUPPORTED}` : parse(line)
  }
  if (line.startsWith('{SHA}')) return parseApacheSha1(line)
  if (SCHEME.test(line)) return `it is a hash of an unsupported kind; ${SUPPORTED}`
  if (!plainAllowed) return `it is not a hash that can be verified; ${SUPPORTED}`
  return { kind: 'plain', digest: hash('sha256', line, 'buffer') }
}

/** bcrypt in JavaScript takes about five seconds for this cost on a desktop; each step doubles it. */
const BCRYPT_COST_LIMIT = 16
const ROUNDS_LIMIT = 10_000_000

const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/
const MD5_CRYPT = /^\$(1|apr1)\$([!-#%-9;-~]{0,8})\$([./0-9A-Za-z]{22})$/
const SHA_CRYPT = /^\$([56])\$(?:rounds=(\d{1,12})\$)?([!-#%-9;-~]{0,16})\$([./0-9A-Za-z]+)$/
const SHA1 = /^\{SHA\}[A-Za-z0-9+/]{27}=$/

/** `$2a$`, `$2b$` and `$2y$` mark bug fixes of C libraries; the algorithm is the same. */
function parseBcrypt(line: string): StoredLine {
  const fields = BCRYPT.exec(line)
  if (fields === null) return 'it is not a complete bcrypt hash (60 characters)'
  const cost = Number(fields[1])
  if (cost < 4) return 'its bcrypt cost is below 4'
  if (cost > BCRYPT_COST_LIMIT)
    return `its bcrypt cost is more than ${BCRYPT_COST_LIMIT}, so a login would take too long`
  return { kind: 'bcrypt', hash: line }
}

/** `$1$salt$hash` of crypt(3) and Apache's `$apr1$`. */
function parseMd5Crypt(line: string): StoredLine {
  const fields = MD5_CRYPT.exec(line)
  if (fields === null) return 'it is not a complete MD5 crypt hash ($1$salt$hash)'
  const [, identifier, salt = '', digest = ''] = fields
  return { kind: 'md5-crypt', magic: identifier === '1' ? '$1$' : '$apr1$', salt, digest }
}

/** `$5$salt$hash` and `$6$salt$hash`, either with `rounds=N$` before the salt. */
function parseShaCrypt(line: string): StoredLine {
  const fields = SHA_CRYPT.exec(line)
  const sha256 = line.startsWith('$5$')
  if (fields?.[4]?.length !== (sha256 ? 43 : 86))
    return 'it is not a complete SHA crypt hash ($5$salt$hash or $6$salt$hash)'
  const [, , roundsText = '5000', salt = '', digest = ''] = fields
  const rounds = Number(roundsText)
  // crypt(3) never writes fewer rounds and never matches such a hash: it computes 1000 rounds, and writes 1000 into its result.
  if (rounds < 1000) return 'its rounds are below 1000'
  if (rounds > ROUNDS_LIMIT) return 'its rounds are more than 10 million'
  return { kind: 'sha-crypt', algorithm: sha256 ? 'sha256' : 'sha512', rounds, salt, digest }
}

/** `{SHA}` and base64: what `htpasswd -s` writes. */
function parseApacheSha1(line: string): StoredLine {
  if (!SHA1.test(line)) return 'it is not a complete {SHA} hash'
  return { kind: 'sha1', digest: Buffer.from(line.slice('{SHA}'.length), 'base64') }
}

/** 1 GiB: with more, two logins at once could exhaust a small machine. */
const MEMORY_LIMIT = 2 ** 30
/** The most bytes that all passes write: about ten seconds of work. */
const WORK_LIMIT = 2 ** 34
const PARALLELISM_LIMIT = 64

const ARGON2ID =
  /^\$argon2id\$v=(\d{1,3})\$m=(\d{1,10}),t=(\d{1,10}),p=(\d{1,10})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/
const SCRYPT = /^\$scrypt\$ln=(\d{1,3}),r=(\d{1,10}),p=(\d{1,10})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/

/** `$argon2id$v=19$m=..,t=..,p=..$salt$hash`: RFC 9106 in the PHC string format. */
function parseArgon2id(line: string): StoredLine {
  const fields = ARGON2ID.exec(line)
  if (fields === null) return 'it is not a complete $argon2id$v=19$m=..,t=..,p=..$salt$hash'
  const [, version, m, t, p, saltText = '', tagText = ''] = fields
  const [memory, passes, parallelism] = [Number(m), Number(t), Number(p)]
  if (version !== '19') return 'its argon2 version is not 19'
  if (passes < 1 || parallelism < 1 || memory < 8 * parallelism)
    return 'its argon2 parameters are outside of RFC 9106 (t and p at least 1, m at least 8 times p)'
  if (memory * 1024 > MEMORY_LIMIT) return 'its argon2 memory is more than 1 GiB (m=1048576)'
  if (memory * 1024 * passes > WORK_LIMIT)
    return 'its argon2 cost is too high (m times t is more than 16777216)'
  if (parallelism > PARALLELISM_LIMIT) return `its argon2 parallelism is more than ${PARALLELISM_LIMIT}`
  const [salt, tag] = [Buffer.from(saltText, 'base64'), Buffer.from(tagText, 'base64')]
  if (salt.length < 8 || tag.length < 12 || tag.length > 128) return SIZES
  return { kind: 'argon2id', memory, passes, parallelism, salt, tag }
}

/** `$scrypt$ln=..,r=..,p=..$salt$hash`: RFC 7914 as passlib writes it. */
function parseScrypt(line: string): StoredLine {
  const fields = SCRYPT.exec(line)
  if (fields === null) return 'it is not a complete $scrypt$ln=..,r=..,p=..$salt$hash'
  const [, ln, r, p, saltText = '', tagText = ''] = fields
  const [logCost, blockSize, parallelism] = [Number(ln), Number(r), Number(p)]
  if (logCost < 1 || blockSize < 1 || parallelism < 1 || blockSize * parallelism >= 2 ** 30)
    return 'its scrypt parameters are outside of RFC 7914 (ln, r and p at least 1, r times p below 2^30)'
  const memory = 128 * blockSize * (2 ** logCost + parallelism)
  if (memory > MEMORY_LIMIT) return 'its scrypt memory is more than 1 GiB (128 times r times 2^ln)'
  if (128 * blockSize * 2 ** logCost * parallelism > WORK_LIMIT)
    return 'its scrypt cost is too high (2^ln times r times p is more than 2^27)'
  const [salt, tag] = [Buffer.from(saltText, 'base64'), Buffer.from(tagText, 'base64')]
  if (salt.length < 8 || tag.length < 12 || tag.length > 128) return SIZES
  return { kind: 'scrypt', cost: 2 ** logCost, blockSize, parallelism, salt, tag }
}

/** Why a salt or a tag is refused. The lower bounds keep a truncated line from matching by chance. */
const SIZES = 'its salt is shorter than 8 bytes or its hash is not 12 to 128 bytes'
