import { type Parsed, understood, unusable } from './credential.ts'

/** What bcrypt in JavaScript does in about five seconds on a desktop; each step doubles it. */
const BCRYPT_COST_LIMIT = 16
const ROUNDS_LIMIT = 10_000_000

const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/
const MD5_CRYPT = /^\$(1|apr1)\$([!-#%-9;-~]{0,8})\$([./0-9A-Za-z]{22})$/
const SHA_CRYPT = /^\$([56])\$(?:rounds=(\d{1,12})\$)?([!-#%-9;-~]{0,16})\$([./0-9A-Za-z]+)$/
const SHA1 = /^\{SHA\}[A-Za-z0-9+/]{27}=$/

/** `$2a$`, `$2b$` and `$2y$` name repairs in C libraries; the algorithm is one. */
export function parseBcrypt(line: string): Parsed {
  const fields = BCRYPT.exec(line)
  if (fields === null) return unusable('it is not a complete bcrypt hash (60 characters)')
  const cost = Number(fields[1])
  if (cost < 4) return unusable('its bcrypt cost is below 4')
  if (cost > BCRYPT_COST_LIMIT) {
    return unusable(`its bcrypt cost is more than ${BCRYPT_COST_LIMIT}, which a login can't wait for`)
  }
  return understood({ kind: 'bcrypt', hash: line })
}

/** `$1$salt$hash` of crypt(3) and Apache's `$apr1$`. */
export function parseMd5Crypt(line: string): Parsed {
  const fields = MD5_CRYPT.exec(line)
  if (fields === null) return unusable('it is not a complete MD5 crypt hash ($1$salt$hash)')
  const [, identifier, salt = '', digest = ''] = fields
  return understood({ kind: 'md5-crypt', magic: identifier === '1' ? '$1$' : '$apr1$', salt, digest })
}

/** `$5$salt$hash` and `$6$salt$hash`, either with `rounds=N$` before the salt. */
export function parseShaCrypt(line: string): Parsed {
  const fields = SHA_CRYPT.exec(line)
  const sha256 = line.startsWith('$5$')
  if (fields?.[4]?.length !== (sha256 ? 43 : 86)) {
    return unusable('it is not a complete SHA crypt hash ($5$salt$hash or $6$salt$hash)')
  }
  const [, , roundsText = '5000', salt = '', digest = ''] = fields
  const rounds = Number(roundsText)
  // crypt(3) never writes fewer, and never matches them: it would verify with 1000 and compare the prefix too.
  if (rounds < 1000) return unusable('its rounds are below 1000')
  if (rounds > ROUNDS_LIMIT) return unusable('its rounds are more than 10 million')
  return understood({ kind: 'sha-crypt', algorithm: sha256 ? 'sha256' : 'sha512', rounds, salt, digest })
}

/** `{SHA}` and base64: what `htpasswd -s` writes. */
export function parseApacheSha1(line: string): Parsed {
  if (!SHA1.test(line)) return unusable('it is not a complete {SHA} hash')
  return understood({ kind: 'sha1', digest: Buffer.from(line.slice('{SHA}'.length), 'base64') })
}
