import { type Grant, type GrantedTokens, refuse } from './grant.ts'

export interface PasswordGrantDependencies {
  readonly verify: (password: string) => Promise<'right' | 'wrong' | 'overloaded'>
  readonly issue: (client: string) => GrantedTokens
  readonly onWrongPassword: () => void
}

/** How long a client is asked to wait when too many passwords are being checked already (seconds). */
const RETRY_AFTER_OVERLOAD = 1

/** The device admin password for a new pair of tokens (RFC 6749 §4.3; the document knows no user names). */
export function createPasswordGrant({ verify, issue, onWrongPassword }: PasswordGrantDependencies): Grant {
  return {
    parameter: 'password',
    async exchange(password, client) {
      switch (await verify(password)) {
        case 'right':
          return { kind: 'granted', tokens: issue(client) }
        case 'wrong':
          onWrongPassword()
          return refuse({ kind: 'invalid-grant', description: 'The password is not right.' })
        case 'overloaded':
          return refuse({ kind: 'overloaded', retryAfter: RETRY_AFTER_OVERLOAD })
      }
    },
  }
}
