import type { UpstreamFailure } from '../http/refusal.ts'
import type { Tokens } from '../tokens/token-contract.ts'
import { type Grant, refuse } from './grant.ts'

export interface PasswordGrantDependencies {
  /** `unavailable`: the device checks the password, and it could not be asked. */
  readonly verify: (
    password: string,
  ) => Promise<'right' | 'wrong' | 'overloaded' | { readonly unavailable: UpstreamFailure }>
  readonly issue: Tokens['issue']
  readonly onWrongPassword: () => void
  readonly onUnavailable: (failure: UpstreamFailure) => void
}

const PASSWORD = 'password'

/** The `Retry-After` (seconds) when too many passwords are being checked. */
const RETRY_AFTER_OVERLOAD = 1

/** Exchanges the device's admin password for a pair of tokens (RFC 6749 §4.3). The API has no user names. */
export function createPasswordGrant({
  verify,
  issue,
  onWrongPassword,
  onUnavailable,
}: PasswordGrantDependencies): Grant<'password'> {
  return {
    name: PASSWORD,
    parameters: ['password'],
    async exchange({ password }, client) {
      const verdict = await verify(password)
      if (typeof verdict === 'object') {
        onUnavailable(verdict.unavailable)
        return refuse({ kind: 'upstream', failure: verdict.unavailable })
      }
      switch (verdict) {
        case 'right':
          return { kind: 'granted', tokens: await issue(client, PASSWORD) }
        case 'wrong':
          onWrongPassword()
          return refuse({ kind: 'invalid-grant', description: 'The password is not right.' })
        case 'overloaded':
          return refuse({ kind: 'overloaded', retryAfter: RETRY_AFTER_OVERLOAD })
      }
    },
  }
}
