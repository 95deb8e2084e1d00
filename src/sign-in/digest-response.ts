import { createHash } from 'node:crypto'
import type { DigestChallenge, DigestHash } from './digest-challenge.ts'

export interface Account {
  readonly user: string
  readonly password: string
}

/** What changes from request to request. */
export interface DigestUse {
  readonly method: string
  /** The request target, byte for byte as it is sent. */
  readonly target: string
  readonly nonce: string
  /** How many requests have used the nonce, this one included. */
  readonly count: number
  readonly cnonce: string
}

/** H(A1), RFC 7616 §3.4.2: all that is needed of the password. With `-sess` it is bound to `cnonce` and the first nonce. */
export function digestKey(challenge: DigestChallenge, account: Account, cnonce: string): string {
  const { hash, realm, nonce, session } = challenge
  const key = digest(hash, `${wire(account.user)}:${realm}:${wire(account.password)}`)
  return session ? digest(hash, `${key}:${nonce}:${cnonce}`) : key
}

/** The value of `Authorization` (RFC 7616 §3.4). */
export function digestAuthorization(
  challenge: DigestChallenge,
  user: string,
  key: string,
  { method, target, nonce, count, cnonce }: DigestUse,
): string {
  const { hash, realm, qop, opaque, algorithm, userhash } = challenge
  const nc = count.toString(16).padStart(8, '0')
  const request = digest(hash, `${method}:${target}`)
  const middle = qop === undefined ? nonce : `${nonce}:${nc}:${cnonce}:${qop}`
  const parts = [
    userName(challenge, user),
    `realm=${quoted(realm)}`,
    `nonce=${quoted(nonce)}`,
    `uri=${quoted(target)}`,
    `response="${digest(hash, `${key}:${middle}:${request}`)}"`,
  ]
  if (algorithm !== undefined) parts.push(`algorithm=${algorithm}`)
  if (qop !== undefined) parts.push(`qop=${qop}`, `nc=${nc}`, `cnonce=${quoted(cnonce)}`)
  if (opaque !== undefined) parts.push(`opaque=${quoted(opaque)}`)
  if (userhash) parts.push('userhash=true')
  return `Digest ${parts.join(', ')}`
}

/** A name beyond ASCII takes the extended form where the device says that it reads UTF-8 (RFC 7616 §3.4). */
function userName({ hash, realm, userhash, utf8 }: DigestChallenge, user: string): string {
  if (userhash) return `username="${digest(hash, `${wire(user)}:${realm}`)}"`
  if (!utf8 || /^[ -~]*$/.test(user)) return `username=${quoted(wire(user))}`
  const encoded = encodeURIComponent(user).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16)}`)
  return `username*=UTF-8''${encoded}`
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

/** Text as its UTF-8 bytes, a character each: the form in which header text travels through this house. */
function wire(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}

function digest(hash: DigestHash, text: string): string {
  return createHash(hash).update(text, 'latin1').digest('hex')
}
