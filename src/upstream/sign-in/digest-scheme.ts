import { randomBytes } from 'node:crypto'
import { fieldValues } from '../../http/fields.ts'
import { parseParameters } from './challenge.ts'
import { verdictOn } from './check-path.ts'
import { type DigestChallenge, digestChallenge } from './digest-challenge.ts'
import { type Account, digestAuthorization, digestKey } from './digest-response.ts'
import type { Answer, Ask, Scheme, Session } from './scheme.ts'

export interface DigestSettings {
  readonly user: string
  /** Answers 401 to whoever is not signed in. */
  readonly checkPath: string
}

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
      const { fields, mark } = session.ticketFor(check)
      const answer = await ask({ ...check, fields })
      const taken = answer.status === 401 ? await again(session, answer, mark) : answer
      if (taken.status !== 401) session.answered(check, taken, mark)
      return verdictOn(taken, checkPath, session)
    },
    isChallenge: (_request, { status, fields }) => status === 401 && digestChallenge(fields) !== undefined,
  }

  /** The nonce went stale between two requests: the device says so only to whoever knows the password. */
  async function again(session: Session, answer: Answer, mark: string): Promise<Answer> {
    if (digestChallenge(answer.fields)?.stale !== true || !session.renew(answer, mark)) return answer
    return ask({ ...check, fields: session.ticketFor(check).fields })
  }
}

/** Answers one challenge, and those that follow from it, with ever higher counts. */
export function createDigestSession(
  first: DigestChallenge,
  account: Account,
  mintCnonce: () => string = () => randomBytes(18).toString('base64'),
): Session {
  let challenge = first
  let cnonce = mintCnonce()
  let key = digestKey(challenge, account, cnonce)
  let nonce = challenge.nonce
  let count = 0
  /** The device has taken this nonce at least once: if it now refuses it, it may only be worn out. */
  let taken = false

  return {
    proven: true,
    over: false,
    ticketFor({ method, target }) {
      count += 1
      const use = { method, target, nonce, count, cnonce }
      return {
        fields: ['Authorization', digestAuthorization(challenge, account.user, key, use)],
        mark: nonce,
      }
    },
    renew({ fields }, mark) {
      if (mark !== nonce) return true
      const next = digestChallenge(fields)
      // Firmware that never says `stale` still gives a new nonce; one it never took once is refused for the password.
      if (next === undefined || !(next.stale || (taken && next.nonce !== nonce))) return false
      challenge = next
      cnonce = mintCnonce()
      key = digestKey(challenge, account, cnonce)
      nonce = challenge.nonce
      count = 0
      taken = false
      return true
    },
    answered(_request, { fields }, mark) {
      if (mark !== nonce) return
      taken = true
      const next = parseParameters(fieldValues(fields, 'authentication-info')[0] ?? '')?.get('nextnonce')
      if (next === undefined || next === nonce) return
      // With `-sess`, the key stays bound to the nonce of the challenge (RFC 7616 §3.4.2).
      nonce = next
      count = 0
    },
    /** `nextnonce` and `rspauth` answer the sidecar's credentials, not the client's. */
    conceal: (fields) => withoutField(fields, 'authentication-info'),
  }
}

function withoutField(fields: readonly string[], name: string): readonly string[] {
  if (!fields.some((each, i) => i % 2 === 0 && each.toLowerCase() === name)) return fields
  return fields.filter((_, i) => fields[i - (i % 2)]?.toLowerCase() !== name)
}
