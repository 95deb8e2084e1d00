import { type Fields, fieldValues, listMembers } from '../http/fields.ts'
import { type Parameters, parseChallenges } from './challenge.ts'

/** A Digest challenge that can be answered (RFC 7616 §3.3). Text as it stood on the wire, a byte a character. */
export interface DigestChallenge {
  readonly realm: string
  readonly nonce: string
  readonly opaque: string | undefined
  /** As the device wrote it; `undefined` where it wrote none and so means MD5. */
  readonly algorithm: string | undefined
  readonly hash: DigestHash
  /** `-sess`: the key is bound to the first nonce and the client's own. */
  readonly session: boolean
  /** `auth`, or `undefined` for the older scheme of RFC 2069, which old firmware still speaks. */
  readonly qop: 'auth' | undefined
  readonly stale: boolean
  readonly userhash: boolean
  readonly utf8: boolean
}

export type DigestHash = 'md5' | 'sha256' | 'sha512-256'

const STRENGTH: readonly DigestHash[] = ['md5', 'sha256', 'sha512-256']

const HASHES: ReadonlyMap<string, DigestHash> = new Map([
  ['md5', 'md5'],
  ['sha-256', 'sha256'],
  ['sha-512-256', 'sha512-256'],
])

/** The strongest Digest challenge among those offered, or `undefined` where none can be answered. */
export function digestChallenge(fields: Fields): DigestChallenge | undefined {
  return parseChallenges(fieldValues(fields, 'www-authenticate'))
    .filter(({ scheme }) => scheme === 'digest')
    .map(({ parameters }) => understood(parameters))
    .filter((challenge) => challenge !== undefined)
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
  // `auth-int` alone would sign the body, which is streamed and not there yet; `-sess` without a qop has no cnonce.
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
