import type { UpstreamFailure } from '../http/refusal.ts'
import type { LogIn } from '../tokens/state.ts'
import { type GrantType, refuse } from './token-endpoint.ts'

export interface PasswordGrantDependencies {
  readonly logIn: LogIn
  readonly onWrongPassword: () => void
  readonly onUnavailable: (failure: UpstreamFailure) => void
}

const PASSWORD = 'password'

/** The `Retry-After` (seconds) if too many passwords are being checked. */
const RETRY_AFTER_OVERLOAD = 1

/** Exchanges the admin password of the device for a pair of tokens (RFC 6749 §4.3). The API has no user names. */
export function createPasswordGrant({
  logIn,
  onWrongPassword,
  onUnavailable,
}: PasswordGrantDependencies): GrantType<'password'> {
  return {
    name: PASSWORD,
    parameters: ['password'],
    async exchange({ password }, client) {
      const result = await logIn(password, client, PASSWORD)
      switch (result) {
        case 'wrong':
          onWrongPassword()
          return refuse({ kind: 'invalid-grant', description: 'The password is not right.' })
        case 'overloaded':
          return refuse({ kind: 'overloaded', retryAfter: RETRY_AFTER_OVERLOAD })
        case 'unavailable':
          return refuse({ kind: 'store-unavailable' })
      }
      if ('accessToken' in result) return { kind: 'granted', tokens: result }
      onUnavailable(result.unavailable)
      return refuse({ kind: 'upstream', failure: result.unavailable })
    },
  }
}
