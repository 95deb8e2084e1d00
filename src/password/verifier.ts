import { createHash, timingSafeEqual } from 'node:crypto'
import { createBoundedQueue } from '../system/bounded-queue.ts'
import { createCryptWorkers } from './crypt-workers.ts'
import { type DerivedCredential, derive } from './key-derivation.ts'
import type { Credential, CryptCredential } from './stored-line.ts'

/** `overloaded`: too many were waiting, or for too long; nothing is known about the password. */
export type Verdict = 'right' | 'wrong' | 'overloaded'

export interface Verifier {
  /** Whether `password`, as its exact UTF-8 bytes, is the stored one. Never holds up the event loop. */
  verify(credential: Credential, password: string): Promise<Verdict>
  /** Why no password can be held against this credential here, whatever it is; `undefined` if it can. */
  obstacle(credential: Credential): string | undefined
  close(): void
}

/**
 * Two at once leave the event loop its share of a small machine, and keep argon2's memory within bounds; sixty-four
 * behind them for five seconds is more than such a machine can answer, so past that a login is told so.
 */
const BOUNDS = { inside: 2, waiting: 64, patience: 5000 }

/**
 * The longest password that C libraries hash (`CRYPT_MAX_PASSPHRASE_SIZE`, less its NUL). The cost of crypt(3) grows
 * with the password, so a long wrong one would buy thousands of times the work (CVE-2016-20013).
 */
const LONGEST_CRYPT_PASSWORD = 511

/** What JavaScript computes, in a thread of its own. */
const THREADED: ReadonlySet<Credential['kind']> = new Set(['bcrypt', 'md5-crypt', 'sha-crypt'])

export function createVerifier(): Verifier {
  const queue = createBoundedQueue(BOUNDS)
  const workers = createCryptWorkers()

  const matches = async (
    credential: DerivedCredential | CryptCredential,
    password: string,
  ): Promise<boolean> => {
    if (credential.kind === 'argon2id' || credential.kind === 'scrypt') {
      return timingSafeEqual(await derive(credential, password), credential.tag)
    }
    return workers.matches({ credential, password })
  }

  return {
    async verify(credential, password) {
      switch (credential.kind) {
        case 'plain':
          return verdict(sameDigest('sha256', password, credential.digest))
        case 'sha1':
          return verdict(sameDigest('sha1', password, credential.digest))
      }
      if (neverMatches(credential, password)) return 'wrong'
      const entry = await queue.enter()
      if (entry.kind !== 'entered') return 'overloaded'
      try {
        return verdict(await matches(credential, password))
      } finally {
        entry.leave()
      }
    },
    obstacle({ kind }) {
      if (!THREADED.has(kind)) return undefined
      const reason = workers.withheld()
      return reason === undefined
        ? undefined
        : `a hash of this kind is checked in a thread of its own. ${reason}`
    },
    close: () => workers.close(),
  }
}

function neverMatches(credential: DerivedCredential | CryptCredential, password: string): boolean {
  // No tool can have hashed a NUL, and bcrypt repeats its key after one: `a` and `a\0a` would be the same.
  if (password.includes('\0')) return true
  const bounded = credential.kind === 'md5-crypt' || credential.kind === 'sha-crypt'
  return bounded && Buffer.byteLength(password) > LONGEST_CRYPT_PASSWORD
}

/** Digests have one length, so the comparison tells nothing, not even how long the stored password is. */
function sameDigest(algorithm: 'sha1' | 'sha256', password: string, digest: Uint8Array): boolean {
  return timingSafeEqual(createHash(algorithm).update(password).digest(), digest)
}

const verdict = (right: boolean): Verdict => (right ? 'right' : 'wrong')
