import { hash } from 'node:crypto'
import type { RequestLine } from '../device/request.ts'
import { type Fields, fieldValues, listMembers } from '../http/fields.ts'
import { type Parameters, parseChallenges } from './challenge.ts'

/** A Digest challenge that the sidecar supports (RFC 7616 §3.3). Its texts are as on the wire: one character for each byte. */
export interface DigestChallenge {
  readonly realm: string
  readonly nonce: string
  readonly opaque: string | undefined
  /** As the device sent it; `undefined` if it sent none, which means MD5. */
  readonly algorithm: string | undefined
  readonly hash: string
  /** `-sess`: the key is bound to the first nonce and to the cnonce. */
  readonly session: boolean
  /** `auth`, or `undefined` for the older scheme of RFC 2069, which old firmware still uses. */
  readonly qop: 'auth' | undefined
  readonly stale: boolean
  readonly userhash: boolean
  readonly utf8: boolean
}

/** The hash names of Node by the algorithm names of RFC 7616, the strongest last. */
const HASHES: ReadonlyMap<string, string> = new Map([
  ['md5', 'md5'],
  ['sha-256', 'sha256'],
  ['sha-512-256', 'sha512-256'],
])
const STRENGTH = [...HASHES.values()]

/** The strongest Digest challenge of a response, or `undefined` if the sidecar supports none of them. */
export function digestChallenge(fields: Fields): DigestChallenge | undefined {
  return parseChallenges(fieldValues(fields, 'www-authenticate'))
    .flatMap(({ scheme, parameters }) => (scheme === 'digest' ? (understood(parameters) ?? []) : []))
    .sort((a, b) => STRENGTH.indexOf(b.hash) - STRENGTH.indexOf(a.hash))[0]
}

function understood(parameters: Parameters): DigestChallenge | undefined {
  const realm = parameters.get('realm')
  const nonce = parameters.get('nonce')
  if (realm === undefined || nonce === undefined) return undefined
  const algorithm = parameters.get('algorithm')
  const [, name = '', sess] = /^(.*?)(-sess)?$/.exec(algorithm?.toLowerCase() ?? 'md5') ?? []
  const hash = HASHES.get(name)
  const offered = parameters.get('qop')
  const qop = offered !== undefined && listMembers([offered]).includes('auth') ? 'auth' : undefined
  // `auth-int` alone signs the body, which is streamed and not complete yet. `-sess` needs a cnonce, which a challenge without a qop has
  // not.
  if (hash === undefined || (offered !== undefined && qop === undefined)) return undefined
  if (sess !== undefined && qop === undefined) return undefined
  return {
    realm,
    nonce,
    opaque: parameters.get('opaque'),
    algorithm,
    hash,
    session: sess !== undefined,
    qop,
    stale: parameters.get('stale')?.toLowerCase() === 'true',
    userhash: parameters.get('userhash')?.toLowerCase() === 'true',
    utf8: parameters.get('charset')?.toLowerCase() === 'utf-8',
  }
}

export interface DigestAccount {
  readonly user: string
  readonly password: string
}

/** The parts of the credentials that differ from request to request. */
interface DigestUse extends RequestLine {
  readonly nonce: string
  /** The nonce count: how many requests have used the nonce, this one included. */
  readonly count: number
  readonly cnonce: string
}

/** H(A1) of RFC 7616 §3.4.2, the only part that depends on the password. With `-sess` it is bound to `cnonce` and to the first nonce. */
export function digestKey(challenge: DigestChallenge, account: DigestAccount, cnonce: string): string {
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

/** A user name that is not ASCII is sent in the extended form if the device supports UTF-8 (RFC 7616 §3.4). */
function userName({ hash, realm, userhash, utf8 }: DigestChallenge, user: string): string {
  if (userhash) return `username="${digest(hash, `${wire(user)}:${realm}`)}"`
  if (!utf8 || /^[ -~]*$/.test(user)) return `username=${quoted(wire(user))}`
  const encoded = encodeURIComponent(user).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16)}`)
  return `username*=UTF-8''${encoded}`
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

/** The UTF-8 bytes of a text, one character for each byte, as all header text is kept. */
function wire(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}

function digest(algorithm: string, text: string): string {
  return hash(algorithm, Buffer.from(text, 'latin1'), 'hex')
}
