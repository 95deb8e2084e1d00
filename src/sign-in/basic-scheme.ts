import type { Answer } from '../device/own-request.ts'
import { fieldValues } from '../http/fields.ts'
import { parseChallenges } from './challenge.ts'
import { type Ask, type Scheme, type Session, verdictOn } from './scheme.ts'

export interface BasicSettings {
  readonly user: string
  /** Answers 401 to whoever is not signed in. */
  readonly checkPath: string
}

/** Basic (RFC 7617), in UTF-8. Whether a password is right, the device says at `checkPath`. */
export function createBasicScheme({ user, checkPath }: BasicSettings, ask: Ask): Scheme {
  const check = { method: 'GET', target: checkPath } as const
  return {
    async login(password) {
      const open = await ask({ ...check, fields: [] })
      if (!asksForBasic(open)) {
        return {
          kind: 'unusable',
          reason: `${checkPath} answered ${open.status} and did not ask for Basic credentials; set check_path to a path that does`,
        }
      }
      const session = basicSession(user, password)
      return verdictOn(await ask({ ...check, fields: session.fields }), checkPath, session)
    },
    isChallenge: (_request, answer) => asksForBasic(answer),
  }
}

/** Some firmware answers 401 without a word of what it wants. */
function asksForBasic({ status, fields }: Answer): boolean {
  const named = fieldValues(fields, 'www-authenticate')
  return (
    status === 401 && (named.length === 0 || parseChallenges(named).some(({ scheme }) => scheme === 'basic'))
  )
}

function basicSession(user: string, password: string): Session & { readonly fields: readonly string[] } {
  const pair = Buffer.from(`${user}:${password}`, 'utf8').toString('base64')
  const fields = ['Authorization', `Basic ${pair}`]
  const ticket = { fields, mark: '' }
  return {
    fields,
    proven: true,
    reusable: true,
    over: false,
    ticketFor: () => ticket,
    renew: () => undefined,
    adopt() {},
    answered() {},
    conceal: (device) => device,
  }
}
