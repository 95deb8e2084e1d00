import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { OwnResponse } from '../device/own-request.ts'
import { fieldValues } from '../http/fields.ts'
import { parseChallenges, parseParameters } from './challenge.ts'
import {
  type DigestAccount,
  type DigestChallenge,
  digestAuthorization,
  digestChallenge,
  digestKey,
} from './digest.ts'
import { type Ask, checkedLogin, type Scheme, type Session } from './scheme.ts'
import { sessionNames } from './session-cookies.ts'

/** The settings of the schemes that HTTP itself defines. */
interface CheckedAccount {
  readonly user: string
  /** A path that responds 401 to a client that is not signed in. */
  readonly checkPath: string
}

/**
 * The login that a 401 asks for; undefined if Postern does not support it. Digest is preferred to Basic, because it does not send the
 * password.
 */
export function httpLogin({ status, fields }: OwnResponse): 'basic' | 'digest' | undefined {
  if (status !== 401) return undefined
  if (digestChallenge(fields) !== undefined) return 'digest'
  const challenges = parseChallenges(fieldValues(fields, 'www-authenticate'))
  return challenges.some(({ scheme }) => scheme === 'basic') ? 'basic' : undefined
}

/** Basic (RFC 7617), in UTF-8. */
export function createBasicScheme({ user, checkPath }: CheckedAccount, ask: Ask): Scheme {
  // Some firmware sends 401 without `WWW-Authenticate`.
  const isChallenge: Scheme['isChallenge'] = (_request, { status, fields }) => {
    const named = fieldValues(fields, 'www-authenticate')
    const isBasic = named.length === 0 || parseChallenges(named).some(({ scheme }) => scheme === 'basic')
    return status === 401 && isBasic
  }
  return {
    isChallenge,
    names: sessionNames([]),
    login: (password) =>
      checkedLogin(checkPath, ask, isChallenge, 'Basic credentials', async () => {
        const pair = Buffer.from(`${user}:${password}`, 'utf8').toString('base64')
        const credentials = { fields: ['Authorization', `Basic ${pair}`], nonce: '' }
        return { kind: 'right', session: { proven: true, credentialsFor: () => credentials } }
      }),
  }
}

/** Digest (RFC 7616). A login answers the challenge of `checkPath`. Later requests share its nonce. */
export function createDigestScheme({ user, checkPath }: CheckedAccount, ask: Ask): Scheme {
  const isChallenge: Scheme['isChallenge'] = (_request, { status, fields }) =>
    status === 401 && digestChallenge(fields) !== undefined
  const wanted = 'Digest credentials that are supported'
  return {
    isChallenge,
    // `nextnonce` and `rspauth` belong to the sidecar's credentials, not to the client's.
    names: sessionNames([], ['authentication-info']),
    login: (password) =>
      checkedLogin(checkPath, ask, isChallenge, wanted, async ({ fields }) => {
        const challenge = digestChallenge(fields)
        return challenge && { kind: 'right', session: createDigestSession(challenge, { user, password }) }
      }),
  }
}

/** A nonce and how often it was used. */
interface NonceState {
  readonly challenge: DigestChallenge
  readonly cnonce: string
  readonly key: string
  readonly nonce: string
  count: number
  /** The device has accepted this nonce at least once. If it refuses the nonce now, the nonce may only have expired. */
  accepted: boolean
}

/** How many nonces are kept for the requests in flight that use them. */
const MAX_NONCES = 64

/**
 * Answers a challenge and its successors, with an increasing nonce count. A request whose nonce expired is repeated with the nonce of its
 * own challenge. Other requests share that nonce only after the device has accepted it. Otherwise concurrent requests would invalidate each
 * other's nonces at firmware that accepts each nonce once, or only in the order of the count.
 */
function createDigestSession(first: DigestChallenge, account: DigestAccount): Session {
  const nonces = new LRUCache<string, NonceState>({ max: MAX_NONCES })
  let shared = begin(first)
  let reusable = false

  function begin(challenge: DigestChallenge): NonceState {
    const cnonce = randomBytes(18).toString('base64')
    const key = digestKey(challenge, account, cnonce)
    return keep({ challenge, cnonce, key, nonce: challenge.nonce, count: 0, accepted: false })
  }

  function keep(state: NonceState): NonceState {
    nonces.set(state.nonce, state)
    return state
  }

  return {
    proven: true,
    get reusable() {
      return reusable
    },
    credentialsFor(request, wanted = shared.nonce) {
      const state = nonces.get(wanted) ?? shared
      state.count += 1
      const { challenge, key, nonce } = state
      const authorization = digestAuthorization(challenge, account.user, key, { ...request, ...state })
      return { fields: ['Authorization', authorization], nonce }
    },
    renew({ fields }, nonce) {
      const next = digestChallenge(fields)
      if (next === undefined) return undefined
      const accepted = nonces.get(nonce)?.accepted ?? true
      // Firmware that never sends `stale` still sends a new nonce. If it never accepted the old nonce, the password is wrong.
      if (!next.stale && !(accepted && next.nonce !== nonce)) return undefined
      return (nonces.get(next.nonce) ?? begin(next)).nonce
    },
    adopt(nonce) {
      shared = nonces.get(nonce) ?? shared
    },
    accepted(_request, { fields }, nonce) {
      const state = nonces.get(nonce)
      if (state === undefined) return
      if (state.accepted) reusable = true
      else shared = state
      state.accepted = true
      const next = parseParameters(fieldValues(fields, 'authentication-info')[0] ?? '')?.get('nextnonce')
      if (state !== shared || next === undefined || next === nonce) return
      // With `-sess`, the key stays bound to the nonce of the challenge (RFC 7616 §3.4.2).
      shared = keep({ ...state, nonce: next, count: 0, accepted: false })
    },
  }
}
