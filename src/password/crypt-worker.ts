import { hash, timingSafeEqual } from 'node:crypto'
import { parentPort } from 'node:worker_threads'
import { decodeBase64, hashSync } from 'bcryptjs'
import type { CryptJob } from './crypt-workers.ts'
import type { CryptCredential } from './stored-line.ts'

// The thread's side of `crypt-workers.ts`: each message is one job, each reply one boolean.
parentPort?.on('message', (job: CryptJob) => {
  parentPort?.postMessage(cryptMatches(job.credential, job.password))
})

/** Whether `password` matches the stored hash. Blocks the thread, for seconds at a high cost: call it in a worker. */
function cryptMatches(credential: CryptCredential, password: string): boolean {
  switch (credential.kind) {
    case 'bcrypt':
      return bcryptMatches(credential.hash, password)
    case 'md5-crypt': {
      const { magic, salt, digest } = credential
      return sameText(md5Crypt(Buffer.from(password), magic, salt), digest)
    }
    case 'sha-crypt': {
      const { algorithm, rounds, salt, digest } = credential
      return sameText(shaCrypt(Buffer.from(password), algorithm, rounds, salt), digest)
    }
  }
}

function sameText(computed: string, stored: string): boolean {
  return computed.length === stored.length && timingSafeEqual(Buffer.from(computed), Buffer.from(stored))
}

const BCRYPT_DIGEST_CHARACTERS = 31
const BCRYPT_DIGEST_BYTES = 23

/**
 * Compares the decoded digests, not the texts. The base64 of bcrypt has spare bits, and some programs leave them set:
 * `compareSync` compares the texts and never matches such a hash.
 */
function bcryptMatches(stored: string, password: string): boolean {
  const computed = hashSync(password, stored.slice(0, -BCRYPT_DIGEST_CHARACTERS))
  return timingSafeEqual(bcryptDigest(computed), bcryptDigest(stored))
}

function bcryptDigest(text: string): Buffer {
  return Buffer.from(decodeBase64(text.slice(-BCRYPT_DIGEST_CHARACTERS), BCRYPT_DIGEST_BYTES))
}

const MD5_ORDER = [0, 6, 12, 1, 7, 13, 2, 8, 14, 3, 9, 15, 4, 10, 5, 11]
const MD5_ROUNDS = 1000

const md5 = (...parts: readonly Uint8Array[]): Buffer => hash('md5', Buffer.concat(parts), 'buffer')

/** MD5 crypt (Poul-Henning Kamp, FreeBSD 1994): the digest part of `$1$salt$digest` and of Apache's `$apr1$`. */
function md5Crypt(password: Uint8Array, magic: '$1$' | '$apr1$', saltText: string): string {
  const salt = Buffer.from(saltText)
  const inner = md5(password, salt, password)
  const parts: Uint8Array[] = [password, Buffer.from(magic), salt]
  for (let left = password.length; left > 0; left -= 16) parts.push(inner.subarray(0, Math.min(left, 16)))
  // The original implementation adds a NUL or the first password byte for each bit. That bug is now part of the format.
  const [nul, first] = [Buffer.alloc(1), password.subarray(0, 1)]
  for (let bits = password.length; bits > 0; bits >>>= 1) parts.push(bits & 1 ? nul : first)

  return cryptBase64(stirred(md5(...parts), password, salt, MD5_ROUNDS, md5), MD5_ORDER)
}

/** The rounds of MD5 crypt and SHA crypt: each one hashes the digest of the round before with password and salt. */
function stirred(
  first: Buffer,
  password: Uint8Array,
  salt: Uint8Array,
  rounds: number,
  hashOf: (...parts: readonly Uint8Array[]) => Buffer,
): Buffer {
  let digest = first
  for (let round = 0; round < rounds; round += 1) {
    const odd = round % 2 === 1
    const step: Uint8Array[] = [odd ? password : digest]
    if (round % 3 !== 0) step.push(salt)
    if (round % 7 !== 0) step.push(password)
    step.push(odd ? digest : password)
    digest = hashOf(...step)
  }
  return digest
}

type ShaAlgorithm = 'sha256' | 'sha512'

/**
 * SHA crypt (Ulrich Drepper, version 0.6): the digest part of `$5$` and `$6$`. Implemented here because the package
 * `unixcrypt` 3.0.4 is wrong for passwords whose length is a multiple of the digest length.
 */
function shaCrypt(password: Uint8Array, algorithm: ShaAlgorithm, rounds: number, saltText: string): string {
  const sha = (...parts: readonly Uint8Array[]): Buffer => hash(algorithm, Buffer.concat(parts), 'buffer')
  const salt = Buffer.from(saltText)
  const inner = sha(password, salt, password)
  const parts: Uint8Array[] = [password, salt, stretched(inner, password.length)]
  for (let bits = password.length; bits > 0; bits >>>= 1) parts.push(bits & 1 ? inner : password)

  const digest = sha(...parts)
  const passwordBytes = stretched(sha(...repeated(password, password.length)), password.length)
  const saltBytes = stretched(sha(...repeated(salt, 16 + (digest[0] ?? 0))), salt.length)
  return cryptBase64(stirred(digest, passwordBytes, saltBytes, rounds, sha), SHA_ORDERS[algorithm])
}

const repeated = (bytes: Uint8Array, times: number): Uint8Array[] =>
  Array.from({ length: times }, () => bytes)

/** The digest, repeated until it fills `length` bytes. */
const stretched = (digest: Uint8Array, length: number): Buffer => Buffer.alloc(length, digest)

/** The byte order of SHA crypt: triples with one byte of each third of the digest, each triple rotated by `turn` more. */
function shaOrder(size: number, turn: 1 | 2, last: readonly number[]): number[] {
  const third = Math.floor(size / 3)
  const positions: number[] = []
  for (let at = 0; at < third; at += 1) {
    for (let member = 0; member < 3; member += 1) positions.push(at + third * ((member + turn * at) % 3))
  }
  return [...positions, ...last]
}

const SHA_ORDERS: Readonly<Record<ShaAlgorithm, readonly number[]>> = {
  sha256: shaOrder(32, 2, [31, 30]),
  sha512: shaOrder(64, 1, [63]),
}

const ALPHABET = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * The base64 of crypt(3): takes the bytes in the order of the scheme, three at a time, and writes the low bits first.
 * `order` lists byte positions from the highest byte of each triple to the lowest; the last group may be shorter.
 */
function cryptBase64(digest: Uint8Array, order: readonly number[]): string {
  let text = ''
  for (let at = 0; at < order.length; at += 3) {
    const group = order.slice(at, at + 3)
    let bits = 0
    for (const position of group) bits = (bits << 8) | (digest[position] ?? 0)
    for (let left = group.length + 1; left > 0; left -= 1) {
      text += ALPHABET[bits & 63]
      bits >>>= 6
    }
  }
  return text
}
