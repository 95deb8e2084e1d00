import { hash } from 'node:crypto'
import { cryptBase64 } from './crypt-base64.ts'

export type ShaAlgorithm = 'sha256' | 'sha512'

/**
 * Ulrich Drepper's SHA crypt, version 0.6: the digest part of `$5$` and `$6$`. Written here because the package
 * `unixcrypt` 3.0.4 computes it wrongly for passwords whose length is a multiple of the digest's.
 */
export function shaCrypt(
  password: Uint8Array,
  algorithm: ShaAlgorithm,
  rounds: number,
  saltText: string,
): string {
  const sha = (...parts: readonly Uint8Array[]): Buffer => hash(algorithm, Buffer.concat(parts), 'buffer')
  const salt = Buffer.from(saltText)
  const inner = sha(password, salt, password)
  const parts: Uint8Array[] = [password, salt, stretched(inner, password.length)]
  for (let bits = password.length; bits > 0; bits >>>= 1) parts.push(bits & 1 ? inner : password)

  let digest = sha(...parts)
  const passwordBytes = stretched(sha(...repeated(password, password.length)), password.length)
  const saltBytes = stretched(sha(...repeated(salt, 16 + (digest[0] ?? 0))), salt.length)
  for (let round = 0; round < rounds; round += 1) {
    const odd = round % 2 === 1
    const step: Uint8Array[] = [odd ? passwordBytes : digest]
    if (round % 3 !== 0) step.push(saltBytes)
    if (round % 7 !== 0) step.push(passwordBytes)
    step.push(odd ? digest : passwordBytes)
    digest = sha(...step)
  }
  return cryptBase64(digest, ORDERS[algorithm])
}

const repeated = (bytes: Uint8Array, times: number): Uint8Array[] =>
  Array.from({ length: times }, () => bytes)

/** The digest written over and over until `length` bytes are filled. */
const stretched = (digest: Uint8Array, length: number): Buffer => Buffer.alloc(length, digest)

/** Triples that step through thirds of the digest, each turned once further than the one before. */
function order(size: number, turn: 1 | 2, last: readonly number[]): number[] {
  const third = Math.floor(size / 3)
  const positions: number[] = []
  for (let at = 0; at < third; at += 1) {
    for (let member = 0; member < 3; member += 1) positions.push(at + third * ((member + turn * at) % 3))
  }
  return [...positions, ...last]
}

const ORDERS: Readonly<Record<ShaAlgorithm, readonly number[]>> = {
  sha256: order(32, 2, [31, 30]),
  sha512: order(64, 1, [63]),
}
