import { randomBytes } from 'node:crypto'
import { type Fields, fieldValues, keepFields } from '../http/fields.ts'
import { parseChallenges, parseParameters } from './challenge.ts'
import {
  type Account,
  type DigestChallenge,
  digestAuthorization,
  digestChallenge,
  digestKey,
} from './digest.ts'
import { type Ask, loginResult, type Scheme, type Session } from './scheme.ts'

/** The settings of the schemes that HTTP itself defines. */
interface CheckedAccount {
  readonly user: string
  /** A path that responds 401 to a client that is not signed in. */
  readonly checkPath: string
}

/** How many nonces a login tries if each becomes stale before it is used. */
const MAX_TRIES = 4

/** Basic (RFC 7617), in UTF-8. */
export function createBasicScheme(account: CheckedAccount, ask: Ask): Scheme {
  const begin = (_: true, { user, password }: Account): Session => {
    const pair = Buffer.from(`${user}:${password}`, 'utf8').toString('base64')
    const credentials = { fields: ['Authorization', `Basic ${pair}`], nonce: '' }
    return { proven: true, credentialsFor: () => credentials }
  }
  return createHttpScheme(account, ask, 'Basic credentials', basicChallenge, begin)
}

/** Some firmware sends 401 without `WWW-Authenticate`. */
function basicChallenge(fields: Fields): true | undefined {
  const named = fieldValues(fields, 'www-authenticate')
  const isBasic = named.length === 0 || parseChallenges(named).some(({ scheme }) => scheme === 'basic')
  return isBasic || undefined
}

/** Digest (RFC 7616). */
export function createDigestScheme(account: CheckedAccount, ask: Ask): Scheme {
  const credentials = 'Digest credentials that are supported'
  return createHttpScheme(account, ask, credentials, digestChallenge, createDigestSession)
}

/** A login gets a challenge from `checkPath` and answers it there. The response says whether a password is right. */
function createHttpScheme<Challenge>(
  { user, checkPath }: CheckedAccount,
  ask: Ask,
  credentials: string,
  challengeIn: (fields: Fields) => Challenge | undefined,
  begin: (challenge: Challenge, account: Account) => Session,
): Scheme {
  const check = { method: 'GET', target: checkPath } as const
  return {
    async login(password) {
      const open = await ask({ ...check, fields: [] })
      const challenge = open.status === 401 ? challengeIn(open.fields) : undefined
      if (challenge === undefined) {
        return {
          kind: 'unusable',
          reason: `${checkPath} answered ${open.status} and did not ask for ${credentials}; set check_path to a path that does`,
        }
      }
      const session = begin(challenge, { user, password })
      let nonce: string | undefined
      for (let tries = 0; tries < MAX_TRIES; tries += 1) {
        const sent = session.credentialsFor(check, nonce)
        const response = await ask({ ...check, fields: sent.fields })
        // The device says `stale` only if the password is right (RFC 7616 §3.3), so that is no wrong password.
        nonce = response.status === 401 ? session.renew?.(response, sent.nonce) : undefined
        if (nonce !== undefined) continue
        if (response.status !== 401) session.accepted?.(check, response, sent.nonce)
        return loginResult(response, checkPath, session)
      }
      return { kind: 'unusable', reason: `${checkPath} calls every nonce stale` }
    },
    isChallenge: (_request, { status, fields }) => status === 401 && challengeIn(fields) !== undefined,
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
 * Answers a challenge and its successors, with an increasing nonce count. A request whose nonce expired is repeated with the
 * nonce of its own challenge. Other requests share that nonce only after the device has accepted it. So concurrent requests do
 * not invalidate each other's nonces at firmware that accepts each nonce once, or only in the order of the count.
 */
function createDigestSession(first: DigestChallenge, account: Account): Session {
  const nonces = new Map<string, NonceState>()
  let shared = begin(first)
  let reusable = false

  function begin(challenge: DigestChallenge): NonceState {
    const cnonce = randomBytes(18).toString('base64')
    const key = digestKey(challenge, account, cnonce)
    return keep({ challenge, cnonce, key, nonce: challenge.nonce, count: 0, accepted: false })
  }

  function keep(state: NonceState): NonceState {
    nonces.set(state.nonce, state)
    const [oldest] = nonces.keys()
    if (nonces.size > MAX_NONCES && oldest !== undefined) nonces.delete(oldest)
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
      // Firmware that never sends `stale` still sends a new nonce. A nonce that it never accepted means a wrong password.
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
    /** `nextnonce` and `rspauth` belong to the sidecar's credentials, not to the client's. */
    conceal: (fields) => keepFields(fields, (name) => name !== 'authentication-info'),
  }
}
