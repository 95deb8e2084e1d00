import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import type { IssuedTokens, RandomBytes } from '../tokens/mint.ts'

const CIPHER = 'aes-256-gcm'
const NONCE = 12
const TAG = 16

/**
 * Encrypts a token response with a key that is derived from the presented refresh token. So the shared store can keep the response for a
 * retry at any sidecar, and the administrator of the store cannot read the tokens.
 */
export function sealResponse(issued: IssuedTokens, presented: string, random: RandomBytes): string {
  const nonce = random(NONCE)
  const cipher = createCipheriv(CIPHER, keyFrom(presented), nonce)
  const text = Buffer.concat([cipher.update(JSON.stringify(issued)), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64')
}

/** Decrypts the result of `sealResponse`; undefined if it was changed in the store. */
export function openResponse(sealed: string, presented: string): IssuedTokens | undefined {
  const bytes = Buffer.from(sealed, 'base64')
  try {
    const decipher = createDecipheriv(CIPHER, keyFrom(presented), bytes.subarray(0, NONCE))
    decipher.setAuthTag(bytes.subarray(NONCE, NONCE + TAG))
    const text = Buffer.concat([decipher.update(bytes.subarray(NONCE + TAG)), decipher.final()])
    // Only `sealResponse` can make a text that passes this key's authentication.
    return JSON.parse(text.toString()) as IssuedTokens
  } catch {
    return undefined
  }
}

/** Derives the key from the token, not from its digest: the store has the digest. */
function keyFrom(presented: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', presented, '', 'postern refresh replay', 32))
}
