import { randomBytes } from 'node:crypto'
import { fieldValues, keepFields } from '../http/fields.ts'
import { parseParameters } from './challenge.ts'
import {
  type Account,
  type DigestChallenge,
  digestAuthorization,
  digestChallenge,
  digestKey,
} from './digest.ts'
import { type Ask, type CheckedAccount, loginResult, type Scheme, type Session } from './scheme.ts'

/** How many nonces a login tries if each becomes stale before it is used. */
const MAX_TRIES = 4

/** Digest (RFC 7616). A login gets a challenge from `checkPath` and answers it there. Later requests share its nonce. */
export function createDigestScheme({ user, checkPath }: CheckedAccount, ask: Ask): Scheme {
  const check = { method: 'GET', target: checkPath } as const
  return {
    async login(password) {
      const open = await ask({ ...check, fields: [] })
      const challenge = open.status === 401 ? digestChallenge(open.fields) : undefined
      if (challenge === undefined) {
        return {
          kind: 'unusable',
          reason: `${checkPath} answered ${open.status} without a Digest challenge that is supported; set check_path to a path that sends one`,
        }
      }
      const session = createDigestSession(challenge, { user, password })
      let credentials = session.credentialsFor(check)
      for (let tries = 1; ; tries += 1) {
        const response = await ask({ ...check, fields: credentials.fields })
        const stale = response.status === 401 && digestChallenge(response.fields)?.stale === true
        if (!stale) {
          if (response.status !== 401) session.accepted(check, response, credentials.nonce)
          return loginResult(response, checkPath, session)
        }
        // The device says `stale` only if the password is right (RFC 7616 §3.3), so this is no wrong password.
        const nonce = session.renew(response, credentials.nonce)
        if (tries === MAX_TRIES) {
          return { kind: 'unusable', reason: `${checkPath} calls every nonce stale` }
        }
        credentials = session.credentialsFor(check, nonce)
      }
    },
    isChallenge: (_request, { status, fields }) => status === 401 && digestChallenge(fields) !== undefined,
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
function createDigestSession(
  first: DigestChallenge,
  account: Account,
  mintCnonce: () => string = () => randomBytes(18).toString('base64'),
): Session {
  const nonces = new Map<string, NonceState>()
  let shared = begin(first)
  let reusable = false

  function begin(challenge: DigestChallenge): NonceState {
    const cnonce = mintCnonce()
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
    expired: false,
    credentialsFor({ method, target }, wanted = shared.nonce) {
      const state = nonces.get(wanted) ?? shared
      state.count += 1
      const { challenge, key, nonce, count, cnonce } = state
      const use = { method, target, nonce, count, cnonce }
      return {
        fields: ['Authorization', digestAuthorization(challenge, account.user, key, use)],
        nonce,
      }
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
