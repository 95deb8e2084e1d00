import type { UpstreamFailure } from '../http/refusal.ts'
import type { Tokens } from '../tokens/token-contract.ts'
import { type GrantType, refuse } from './token-endpoint.ts'

export interface PasswordGrantDependencies {
  /** `unavailable`: the device has to check the password, and did not respond. */
  readonly verify: (
    password: string,
  ) => Promise<'right' | 'wrong' | 'overloaded' | { readonly unavailable: UpstreamFailure }>
  readonly issue: Tokens['issue']
  readonly onWrongPassword: () => void
  readonly onUnavailable: (failure: UpstreamFailure) => void
}

const PASSWORD = 'password'

/** The `Retry-After` (seconds) if too many passwords are being checked. */
const RETRY_AFTER_OVERLOAD = 1

/** Exchanges the admin password of the device for a pair of tokens (RFC 6749 §4.3). The API has no user names. */
export function createPasswordGrant({
  verify,
  issue,
  onWrongPassword,
  onUnavailable,
}: PasswordGrantDependencies): GrantType<'password'> {
  return {
    name: PASSWORD,
    parameters: ['password'],
    async exchange({ password }, client) {
      const result = await verify(password)
      if (typeof result === 'object') {
        onUnavailable(result.unavailable)
        return refuse({ kind: 'upstream', failure: result.unavailable })
      }
      switch (result) {
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
