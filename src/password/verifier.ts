import { hash, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../system/clock.ts'
import { inMib } from '../system/text.ts'
import { createCryptWorkers } from './crypt-workers.ts'
import { derive, memoryFor } from './key-derivation.ts'
import { createLoginQueue, type OnEnd } from './login-queue.ts'
import type { Credential, DigestCredential } from './stored-line.ts'
import { ALL_EQUAL, type Precedence } from './weighted-turns.ts'

/**
 * `overloaded`: the queue was full or the wait too long, so the password was not checked. `other-name`: the password is right, but for
 * another name than the one that came with it.
 */
export type Verification = 'right' | 'wrong' | 'other-name' | 'overloaded'

/** The result of a verification, and the generation of the passwords that it is about: see `Passwords.verify`. */
export interface Verified {
  readonly result: Verification
  readonly generation: number
  /** The name of the password that is right; empty or undefined for that of `password`. */
  readonly name?: string
}

export type Verifier = ReturnType<typeof createVerifier>

/** The memory that logins may make the process hold (bytes). */
export interface HashMemory {
  readonly limit: number
  /** Called when a verification takes memory, and with the negative when it is over. */
  hold(change: number): void
}

const UNBOUNDED: HashMemory = { limit: Number.POSITIVE_INFINITY, hold() {} }

/**
 * Two at once leave time for the event loop on a small machine, and bound the memory of argon2. 64 waiting for five seconds
 * (ms) is more than such a machine can verify, so further logins are refused as overloaded.
 */
const BOUNDS = { inside: 2, waiting: 64, maxWait: 5000 }

/** Too fast to wait for a turn. */
const FAST: ReadonlySet<Credential['kind']> = new Set(['plain', 'sha1'])
/** Computed in JavaScript, on worker threads. */
const THREADED: ReadonlySet<Credential['kind']> = new Set(['bcrypt', 'md5-crypt', 'sha-crypt'])

export function createVerifier(
  clock: Pick<Clock, 'after'>,
  memory: HashMemory = UNBOUNDED,
  precedence: Precedence = ALL_EQUAL,
) {
  const bounds = { ...BOUNDS }
  const queue = createLoginQueue<readonly number[]>(clock, bounds, precedence)
  const numbersOf = createNumbers()
  const workers = createCryptWorkers()

  const matches = async (credential: Credential, password: string): Promise<boolean> => {
    if (neverMatches(credential, password)) return false
    switch (credential.kind) {
      case 'plain':
      case 'sha1':
        return sameDigest(credential, password)
      case 'argon2id':
      case 'scrypt':
        return timingSafeEqual(await derive(credential, password), credential.tag)
      default:
        return workers.matches({ credential, password })
    }
  }

  /** Compares all forms with all credentials. Returns the positions of the credentials that match the first form with a match. */
  async function compare(
    credentials: readonly Credential[],
    forms: readonly string[],
  ): Promise<readonly number[]> {
    const found = forms.map((): number[] => [])
    for (const [at, credential] of credentials.entries()) {
      for (const [i, form] of forms.entries()) if (await matches(credential, form)) found[i]?.push(at)
    }
    return found.find(({ length }) => length > 0) ?? []
  }

  return {
    /**
     * Compares `password` with all credentials, and returns the positions of those that match its exact UTF-8 bytes, or if there are none,
     * another of its forms (`formsOf`). All are compared in one turn, also after a match, so the time does not tell which one matched, or
     * whether one did. Never blocks the event loop. Logins with the same password that wait at the same time share one comparison.
     *
     * @param client the key of the client: see `WeightedTurns`
     */
    async verify(
      credentials: readonly Credential[],
      password: string,
      client: string,
      onEnd?: OnEnd,
    ): Promise<readonly number[] | 'overloaded'> {
      const forms = formsOf(password)
      // The largest, not the sum: one credential is verified after the other.
      const needed = Math.max(0, ...credentials.map(memoryOf))
      bounds.inside = 2 * needed > memory.limit ? 1 : BOUNDS.inside
      const verify = async (): Promise<readonly number[]> => {
        memory.hold(needed)
        try {
          return await compare(credentials, forms)
        } finally {
          memory.hold(-needed)
        }
      }
      const isSlow = credentials.some(
        (each) => !FAST.has(each.kind) && forms.some((form) => !neverMatches(each, form)),
      )
      if (!isSlow) return verify()
      return queue.enter({ client, password, against: numbersOf(credentials) }, verify, onEnd)
    },
    /** Why this process cannot verify any password against this credential; `undefined` if it can. */
    obstacle(credential: Credential): string | undefined {
      const tooLarge = beyondMemory(credential, memory.limit)
      if (tooLarge !== undefined || !THREADED.has(credential.kind)) return tooLarge
      const reason = workers.start()
      return reason === undefined
        ? undefined
        : `a hash of this kind is verified on a worker thread. ${reason}`
    },
    close: workers.close,
  }
}

/** The longest form besides the bytes as they came (bytes). A decomposed text is up to three times as long, and its hash may cost as much more. */
const LONGEST_FORM = 511

/**
 * The forms in which a password may have been stored: as it came, and in Unicode's NFC and NFD (UAX #15), where these differ. macOS types
 * and stores `é` as two code points, most other systems as one. No other mapping is applied: RFC 8265 §4.2.1 also maps spaces.
 */
export function formsOf(password: string): readonly string[] {
  const others = [password.normalize('NFC'), password.normalize('NFD')]
  return [...new Set([password, ...others.filter((form) => Buffer.byteLength(form) <= LONGEST_FORM)])]
}

/** The memory that a verification takes (bytes), as far as it is worth counting. */
export function memoryOf(credential: Credential): number {
  return credential.kind === 'argon2id' || credential.kind === 'scrypt' ? memoryFor(credential) : 0
}

/** Why no login with this hash fits what clients may hold (bytes); undefined if one does. */
export function beyondMemory(credential: Credential, limit: number): string | undefined {
  const needed = memoryOf(credential)
  if (needed <= limit) return undefined
  return `a login with this hash takes ${inMib(needed)}, and clients may hold ${inMib(limit)} (listen.memory)`
}

/** Numbers credentials, so that a short text names a list of them. */
function createNumbers() {
  const numbers = new WeakMap<Credential, number>()
  let last = 0
  function numberOf(credential: Credential): number {
    const known = numbers.get(credential)
    if (known !== undefined) return known
    last += 1
    numbers.set(credential, last)
    return last
  }
  return (credentials: readonly Credential[]): string => credentials.map(numberOf).join()
}

/** The longest password that C libraries hash (bytes): `CRYPT_MAX_PASSPHRASE_SIZE` without its NUL. */
const LONGEST_CRYPT_PASSWORD = 511

/**
 * Whether no tool has stored such a hash of this password. The cost of crypt(3) grows with the length of the password, so a long one that is wrong
 * could cost thousands of times as much (CVE-2016-20013).
 */
function neverMatches({ kind }: Credential, password: string): boolean {
  // No tool hashes a NUL. bcrypt repeats its key after a NUL, so `a` and `a\0a` would be the same password.
  if (password.includes('\0')) return true
  const bounded = kind === 'md5-crypt' || kind === 'sha-crypt'
  return bounded && Buffer.byteLength(password) > LONGEST_CRYPT_PASSWORD
}

/** Compares digests of equal length in constant time, so the timing does not even reveal the length of the password. */
function sameDigest({ kind, digest }: DigestCredential, password: string): boolean {
  return timingSafeEqual(hash(kind === 'plain' ? 'sha256' : 'sha1', password, 'buffer'), digest)
}
