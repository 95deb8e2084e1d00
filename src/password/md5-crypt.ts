import { hash } from 'node:crypto'
import { cryptBase64 } from './crypt-base64.ts'

const ORDER = [0, 6, 12, 1, 7, 13, 2, 8, 14, 3, 9, 15, 4, 10, 5, 11]
const ROUNDS = 1000

const md5 = (...parts: readonly Uint8Array[]): Buffer => hash('md5', Buffer.concat(parts), 'buffer')

/** Poul-Henning Kamp's MD5 crypt, FreeBSD 1994: the digest part of `$1$salt$digest` and of Apache's `$apr1$`. */
export function md5Crypt(password: Uint8Array, magic: '$1$' | '$apr1$', saltText: string): string {
  const salt = Buffer.from(saltText)
  const inner = md5(password, salt, password)
  const parts: Uint8Array[] = [password, Buffer.from(magic), salt]
  for (let left = password.length; left > 0; left -= 16) parts.push(inner.subarray(0, Math.min(left, 16)))
  // A slip of the original that became the format: a NUL or the first byte of the password, bit by bit.
  const [nul, first] = [Buffer.alloc(1), password.subarray(0, 1)]
  for (let bits = password.length; bits > 0; bits >>>= 1) parts.push(bits & 1 ? nul : first)

  let digest = md5(...parts)
  for (let round = 0; round < ROUNDS; round += 1) {
    const odd = round % 2 === 1
    const step: Uint8Array[] = [odd ? password : digest]
    if (round % 3 !== 0) step.push(salt)
    if (round % 7 !== 0) step.push(password)
    step.push(odd ? digest : password)
    digest = md5(...step)
  }
  return cryptBase64(digest, ORDER)
}
