import { type Credential, isHash } from './stored-line.ts'

/** The least number of characters that NIST SP 800-63B §3.1.1.2 (revision 4) and OWASP ask for. */
const SHORTEST = 8

/** Passwords of at least that length from the top of lists of leaked ones, and passwords that firmware ships; in lower case. */
const USUAL: ReadonlySet<string> = new Set(
  `12345678 123456789 1234567890 0123456789 87654321 12344321 1q2w3e4r 1q2w3e4r5t 1qaz2wsx qwertyui qwertyuiop qwerty123 qwertz123
  asdfghjk abcd1234 abc12345 password password1 password12 password123 password! passw0rd p@ssw0rd p@ssword passwort passwort1 passwort123
  kennwort geheim123 admin123 admin1234 adminadmin administrator changeme changeme1 changeit changethis letmein1 welcome1 welcome123
  willkommen iloveyou sunshine princess football baseball superman trustno1 starwars whatever computer internet default1 testtest test1234
  root1234 rootroot toor1234 useruser user1234 guest123 secret12 secret123 supersecret private1 operator supervisor service1 raspberry
  device123 postern1 postern123`.split(/\s+/),
)

/** Why this password is easily guessed, as the end of a sentence about it; undefined if it is neither short nor usual. Never quotes it. */
export function weaknessOf(password: string): string | undefined {
  const characters = [...password]
  if (characters.length < SHORTEST) return `has fewer than ${SHORTEST} characters`
  const isUsual = USUAL.has(password.toLowerCase()) || new Set(characters).size < 3
  return isUsual ? 'is one of the usual ones, which are guessed first' : undefined
}

/** Less memory over all passes (KiB) lets one graphics card compute a million hashes a second. */
const LEAST_WORK = 4_096
/** crypt(3) has 5000 rounds by default. */
const LEAST_ROUNDS = 5_000

/** The kind of hash, as a noun, if an attacker who has the hash can try more than a million passwords a second; otherwise undefined. */
export function cheapHash(credential: Credential): string | undefined {
  switch (credential.kind) {
    case 'sha1':
      return 'a SHA-1 hash'
    case 'md5-crypt':
      return 'an MD5 hash'
    case 'sha-crypt':
      return credential.rounds < LEAST_ROUNDS ? `a hash with fewer than ${LEAST_ROUNDS} rounds` : undefined
    case 'argon2id':
      return credential.memory * credential.passes < LEAST_WORK ? 'an argon2id hash of low cost' : undefined
    case 'scrypt': {
      const { cost, blockSize, parallelism } = credential
      const kibibytes = (128 * cost * blockSize * parallelism) / 1024
      return kibibytes < LEAST_WORK ? 'an scrypt hash of low cost' : undefined
    }
    case 'plain':
    case 'bcrypt':
      return undefined
  }
}

/** The lengths of MD5, SHA-1, SHA-256, SHA-384 and SHA-512 in hexadecimal digits. */
const BARE_HASH = /^(?:[\da-f]{32}|[\da-f]{40}|[\da-f]{64}|[\da-f]{96}|[\da-f]{128})$/i

/** What a line looks like, as a noun, though it is taken for a plain password; undefined if it looks like a password. */
export function mistakenFor(line: string): string | undefined {
  if (BARE_HASH.test(line)) return `a bare hash (${line.length} hexadecimal digits)`
  const [, rest = ''] = /^[^:]+:(.*)$/.exec(line) ?? []
  if (isHash(rest.split(':', 1)[0] ?? '')) return 'a line of an htpasswd or shadow file'
  return /^\{[a-z0-9][a-z0-9./-]*\}/i.test(line) ? 'a hash with its scheme in lower case' : undefined
}

/** Whether a password begins or ends with a blank, which is easily typed or pasted by mistake. */
export function hasOuterBlank(password: string): boolean {
  return password.trim() !== password
}
