import { hash, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../system/clock.ts'
import { inMib } from '../system/text.ts'
import { createCryptWorkers } from './crypt-workers.ts'
import { derive, memoryFor } from './key-derivation.ts'
import { createLoginQueue, type OnEnd } from './login-queue.ts'
import type { Credential, DigestCredential } from './stored-line.ts'
import { ALL_EQUAL, type Precedence } from './weighted-turns.ts'

/**
 * `overloaded`: the queue was full or the wait too long, so the password was not checked. `other-name`: the password is right, but belongs
 * to another name than the username that came with it. `unchecked`: the hook gave no verdict.
 */
export type Verification = 'right' | 'wrong' | 'other-name' | 'overloaded' | 'unchecked'

/** The result of a verification, and the generation of the passwords with which it compared: see `Passwords.verify`. */
export interface Verified {
  readonly result: Verification
  readonly generation: number
  /** The login must not verify its password again: the hook has got it, and it may be a one-time password. */
  readonly once?: true
  /** The name of the password that is right; empty or undefined for that of `password`. */
  readonly name?: string
}

export type Verifier = ReturnType<typeof createVerifier>

/** The account of the memory that verifications hold (bytes). */
export interface HashMemory {
  readonly limit: number
  /** Called with the memory of a verification when it begins, and with the negative when it ends. */
  hold(change: number): void
}

const UNBOUNDED: HashMemory = { limit: Number.POSITIVE_INFINITY, hold() {} }

/**
 * Two verifications at once leave time for the event loop on a small machine, and bound the memory of argon2. Such a machine cannot verify
 * 64 passwords in a time that clients wait for, so further logins are refused as `overloaded`. `wait` in ms.
 */
const BOUNDS = { inside: 2, waiting: 64, wait: { least: 5_000, most: 30_000 } }

/** Verified at once: faster than a wait for a turn. */
const FAST: ReadonlySet<Credential['kind']> = new Set(['plain', 'sha1'])
/** Computed in JavaScript, on worker threads. */
const THREADED: ReadonlySet<Credential['kind']> = new Set(['bcrypt', 'md5-crypt', 'sha-crypt'])

export function createVerifier(
  clock: Pick<Clock, 'after' | 'monotonic'>,
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

  /** Compares all forms with all credentials. Returns the positions of the credentials that match the first form that matches any. */
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
     * Compares `password` with all credentials. Returns the positions of those that match its exact UTF-8 bytes; if none does, of those
     * that match another of its forms (`formsOf`). All are compared in one turn, even after a match, so the time does not reveal which one
     * matches, or whether one does. Never blocks the event loop. Logins that wait with the same password share one comparison.
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
      // The largest, not the sum: the credentials are compared one after the other.
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
      if (!isSlow) return needed === 0 ? compare(credentials, forms) : verify()
      return queue.enter({ client, password, against: numbersOf(credentials) }, verify, onEnd)
    },
    /** Why this process cannot verify any password against this credential, with this limit of memory; `undefined` if it can. */
    obstacle(credential: Credential, limit = memory.limit): string | undefined {
      const tooLarge = beyondMemory(credential, limit)
      if (tooLarge !== undefined || !THREADED.has(credential.kind)) return tooLarge
      const reason = workers.start()
      return reason === undefined
        ? undefined
        : `a hash of this kind is verified on a worker thread. ${reason}`
    },
    close: workers.close,
  }
}

/** The longest form besides the original bytes (bytes). A decomposed text is up to three times as long, and so may its hash cost more. */
const LONGEST_FORM = 511

/**
 * The forms in which a password may have been stored: the original bytes, and Unicode's NFC and NFD (UAX #15) where these differ. macOS
 * types and stores `é` as two code points, most other systems as one. There is no other mapping, such as that of spaces in RFC 8265 §4.2.1.
 */
export function formsOf(password: string): readonly string[] {
  const others = [password.normalize('NFC'), password.normalize('NFD')]
  return [...new Set([password, ...others.filter((form) => Buffer.byteLength(form) <= LONGEST_FORM)])]
}

/** The memory of a verification (bytes); 0 for hashes that are not memory-hard. */
export function memoryOf(credential: Credential): number {
  return credential.kind === 'argon2id' || credential.kind === 'scrypt' ? memoryFor(credential) : 0
}

/** Why a login with this hash does not fit in the memory that clients may hold (`limit`, bytes); undefined if it does. */
export function beyondMemory(credential: Credential, limit: number): string | undefined {
  const needed = memoryOf(credential)
  if (needed <= limit) return undefined
  return `a login with this hash takes ${inMib(needed)}, and clients may hold ${inMib(limit)} (listen.memory)`
}

/** Gives each credential a number, so a short text can name a list of credentials. */
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
 * True if no tool can have stored such a hash of this password, so it need not be hashed. The cost of crypt(3) grows with the length of the
 * password, and a long wrong one could cost thousands of times as much (CVE-2016-20013).
 */
function neverMatches({ kind }: Credential, password: string): boolean {
  // No tool hashes a NUL. bcrypt repeats its key after a NUL, so `a` and `a\0a` would be the same password.
  if (password.includes('\0')) return true
  const bounded = kind === 'md5-crypt' || kind === 'sha-crypt'
  return bounded && Buffer.byteLength(password) > LONGEST_CRYPT_PASSWORD
}

/** Compares digests in constant time. Their length is fixed, so the time does not reveal the length of the password either. */
function sameDigest({ kind, digest }: DigestCredential, password: string): boolean {
  return timingSafeEqual(hash(kind === 'plain' ? 'sha256' : 'sha1', password, 'buffer'), digest)
}
