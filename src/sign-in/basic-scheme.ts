import type { OwnResponse } from '../device/own-request.ts'
import { fieldValues } from '../http/fields.ts'
import { parseChallenges } from './challenge.ts'
import { type Ask, loginResult, type Scheme, type Session } from './scheme.ts'

export interface BasicSettings {
  readonly user: string
  /** A path that responds 401 to a client that is not signed in. */
  readonly checkPath: string
}

/** Basic (RFC 7617), in UTF-8. The response of `checkPath` says whether a password is right. */
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
      return loginResult(await ask({ ...check, fields: session.fields }), checkPath, session)
    },
    isChallenge: (_request, response) => asksForBasic(response),
  }
}

/** Some firmware sends 401 without `WWW-Authenticate`. */
function asksForBasic({ status, fields }: OwnResponse): boolean {
  const named = fieldValues(fields, 'www-authenticate')
  return (
    status === 401 && (named.length === 0 || parseChallenges(named).some(({ scheme }) => scheme === 'basic'))
  )
}

function basicSession(user: string, password: string): Session & { readonly fields: readonly string[] } {
  const pair = Buffer.from(`${user}:${password}`, 'utf8').toString('base64')
  const fields = ['Authorization', `Basic ${pair}`]
  const credentials = { fields, nonce: '' }
  return {
    fields,
    proven: true,
    reusable: true,
    expired: false,
    credentialsFor: () => credentials,
    renew: () => undefined,
    adopt() {},
    accepted() {},
    conceal: (device) => device,
  }
}
