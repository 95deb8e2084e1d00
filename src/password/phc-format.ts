import { type Parsed, understood, unusable } from './credential.ts'
import { argon2Available } from './derivation.ts'

/** One GiB: more would let two logins at once exhaust a small machine. */
const MEMORY_LIMIT = 2 ** 30
/** Bytes written over all passes. Some ten seconds of work: twice what a login may wait. */
const WORK_LIMIT = 2 ** 34
const PARALLELISM_LIMIT = 64

const ARGON2ID =
  /^\$argon2id\$v=(\d{1,3})\$m=(\d{1,10}),t=(\d{1,10}),p=(\d{1,10})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/
const SCRYPT = /^\$scrypt\$ln=(\d{1,3}),r=(\d{1,10}),p=(\d{1,10})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/

/** `$argon2id$v=19$m=..,t=..,p=..$salt$hash`: RFC 9106 in the PHC string format. */
export function parseArgon2id(line: string): Parsed {
  const fields = ARGON2ID.exec(line)
  if (fields === null) return unusable('it is not a complete $argon2id$v=19$m=..,t=..,p=..$salt$hash')
  const [, version, m, t, p, saltText = '', tagText = ''] = fields
  const [memory, passes, parallelism] = [Number(m), Number(t), Number(p)]
  if (version !== '19') return unusable('its argon2 version is not 19')
  if (passes < 1 || parallelism < 1 || memory < 8 * parallelism) {
    return unusable(
      'its argon2 parameters are outside of RFC 9106 (t and p at least 1, m at least 8 times p)',
    )
  }
  if (memory * 1024 > MEMORY_LIMIT) return unusable('its argon2 memory is more than 1 GiB (m=1048576)')
  if (memory * 1024 * passes > WORK_LIMIT) return unusable('its argon2 cost is absurd (m times t)')
  if (parallelism > PARALLELISM_LIMIT) {
    return unusable(`its argon2 parallelism is more than ${PARALLELISM_LIMIT}`)
  }
  const [salt, tag] = [Buffer.from(saltText, 'base64'), Buffer.from(tagText, 'base64')]
  if (salt.length < 8 || tag.length < 12 || tag.length > 128) return unusable(SIZES)
  if (!argon2Available()) return unusable('this Node.js has no argon2 (it came with 24.7 and OpenSSL 3.2)')
  return understood({ kind: 'argon2id', memory, passes, parallelism, salt, tag })
}

/** `$scrypt$ln=..,r=..,p=..$salt$hash`: RFC 7914 as passlib writes it. */
export function parseScrypt(line: string): Parsed {
  const fields = SCRYPT.exec(line)
  if (fields === null) return unusable('it is not a complete $scrypt$ln=..,r=..,p=..$salt$hash')
  const [, ln, r, p, saltText = '', tagText = ''] = fields
  const [logCost, blockSize, parallelism] = [Number(ln), Number(r), Number(p)]
  if (logCost < 1 || blockSize < 1 || parallelism < 1 || blockSize * parallelism >= 2 ** 30) {
    return unusable(
      'its scrypt parameters are outside of RFC 7914 (ln, r and p at least 1, r times p below 2^30)',
    )
  }
  const memory = 128 * blockSize * (2 ** logCost + parallelism)
  if (memory > MEMORY_LIMIT) return unusable('its scrypt memory is more than 1 GiB (128 times r times 2^ln)')
  if (128 * blockSize * 2 ** logCost * parallelism > WORK_LIMIT) {
    return unusable('its scrypt cost is absurd (2^ln times r times p)')
  }
  const [salt, tag] = [Buffer.from(saltText, 'base64'), Buffer.from(tagText, 'base64')]
  if (salt.length < 8 || tag.length < 12 || tag.length > 128) return unusable(SIZES)
  return understood({ kind: 'scrypt', cost: 2 ** logCost, blockSize, parallelism, salt, tag })
}

/** Lower bounds keep a truncated line from matching by luck. */
const SIZES = 'its salt is shorter than 8 bytes or its hash is not 12 to 128 bytes'
