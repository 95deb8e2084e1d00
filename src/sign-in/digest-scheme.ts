import { randomBytes } from 'node:crypto'
import { fieldValues, keepFields } from '../http/fields.ts'
import { parseParameters } from './challenge.ts'
import { type DigestChallenge, digestChallenge } from './digest-challenge.ts'
import { type Account, digestAuthorization, digestKey } from './digest-response.ts'
import { type Ask, type Scheme, type Session, verdictOn } from './scheme.ts'

export interface DigestSettings {
  readonly user: string
  /** Answers 401 to whoever is not signed in. */
  readonly checkPath: string
}

/** So often a login is tried with nonces that go stale between two requests. */
const MOST_TRIES = 4

/** Digest (RFC 7616). A login fetches a challenge at `checkPath` and answers it there; then its nonce serves everything. */
export function createDigestScheme({ user, checkPath }: DigestSettings, ask: Ask): Scheme {
  const check = { method: 'GET', target: checkPath } as const
  return {
    async login(password) {
      const open = await ask({ ...check, fields: [] })
      const challenge = open.status === 401 ? digestChallenge(open.fields) : undefined
      if (challenge === undefined) {
        return {
          kind: 'unusable',
          reason: `${checkPath} answered ${open.status} without a Digest challenge that can be answered; set check_path to a path that asks for one`,
        }
      }
      const session = createDigestSession(challenge, { user, password })
      let ticket = session.ticketFor(check)
      for (let tries = 1; ; tries += 1) {
        const answer = await ask({ ...check, fields: ticket.fields })
        const stale = answer.status === 401 && digestChallenge(answer.fields)?.stale === true
        if (!stale) {
          if (answer.status !== 401) session.answered(check, answer, ticket.mark)
          return verdictOn(answer, checkPath, session)
        }
        // Only whoever knows the password is told that the nonce is stale: that is no word against it (RFC 7616 §3.3).
        const mark = session.renew(answer, ticket.mark)
        if (tries === MOST_TRIES) {
          return { kind: 'unusable', reason: `${checkPath} calls every nonce stale` }
        }
        ticket = session.ticketFor(check, mark)
      }
    },
    isChallenge: (_request, { status, fields }) => status === 401 && digestChallenge(fields) !== undefined,
  }
}

/** One nonce, and how often it was used. */
interface Turn {
  readonly challenge: DigestChallenge
  readonly cnonce: string
  readonly key: string
  readonly nonce: string
  count: number
  /** The device has taken this nonce at least once: if it now refuses it, it may only be worn out. */
  taken: boolean
}

/** So many nonces are kept, for requests that are under way with them. */
const MOST_TURNS = 64

/**
 * Answers one challenge, and those that follow from it, with ever higher counts. A request whose nonce was worn out goes
 * on with the one that it was given itself; only when the device has taken that does it serve everything. So requests
 * under way together cannot use up each other's nonces, where firmware takes each only once, or counts only in order.
 */
function createDigestSession(
  first: DigestChallenge,
  account: Account,
  mintCnonce: () => string = () => randomBytes(18).toString('base64'),
): Session {
  const turns = new Map<string, Turn>()
  let shared = begin(first)
  let reusable = false

  function begin(challenge: DigestChallenge): Turn {
    const cnonce = mintCnonce()
    const key = digestKey(challenge, account, cnonce)
    return keep({ challenge, cnonce, key, nonce: challenge.nonce, count: 0, taken: false })
  }

  function keep(turn: Turn): Turn {
    turns.set(turn.nonce, turn)
    const [oldest] = turns.keys()
    if (turns.size > MOST_TURNS && oldest !== undefined) turns.delete(oldest)
    return turn
  }

  return {
    proven: true,
    get reusable() {
      return reusable
    },
    over: false,
    ticketFor({ method, target }, mark = shared.nonce) {
      const turn = turns.get(mark) ?? shared
      turn.count += 1
      const { challenge, key, nonce, count, cnonce } = turn
      const use = { method, target, nonce, count, cnonce }
      return {
        fields: ['Authorization', digestAuthorization(challenge, account.user, key, use)],
        mark: nonce,
      }
    },
    renew({ fields }, mark) {
      const next = digestChallenge(fields)
      if (next === undefined) return undefined
      const taken = turns.get(mark)?.taken ?? true
      // Firmware that never says `stale` still gives a new nonce; one it never took once is refused for the password.
      if (!next.stale && !(taken && next.nonce !== mark)) return undefined
      return (turns.get(next.nonce) ?? begin(next)).nonce
    },
    adopt(mark) {
      shared = turns.get(mark) ?? shared
    },
    answered(_request, { fields }, mark) {
      const turn = turns.get(mark)
      if (turn === undefined) return
      if (turn.taken) reusable = true
      else shared = turn
      turn.taken = true
      const next = parseParameters(fieldValues(fields, 'authentication-info')[0] ?? '')?.get('nextnonce')
      if (turn !== shared || next === undefined || next === mark) return
      // With `-sess`, the key stays bound to the nonce of the challenge (RFC 7616 §3.4.2).
      shared = keep({ ...turn, nonce: next, count: 0, taken: false })
    },
    /** `nextnonce` and `rspauth` answer the sidecar's credentials, not the client's. */
    conceal: (fields) => keepFields(fields, (name) => name !== 'authentication-info'),
  }
}
