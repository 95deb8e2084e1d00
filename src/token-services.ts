import type { Config } from './config/config.ts'
import { createPasswordGrant } from './oauth/password-grant.ts'
import { createRefreshGrant } from './oauth/refresh-grant.ts'
import { createTokenEndpoint, type TokenEndpoint } from './oauth/token-endpoint.ts'
import type { Metrics } from './record/metrics.ts'
import type { State } from './state.ts'

/** The token endpoint with the two grants of the device's document. */
export function tokenService(state: State, metrics: Metrics, config: () => Config): TokenEndpoint {
  return createTokenEndpoint({
    bodyTimeout: () => config().listen.bodyTimeout,
    grants: new Map([
      [
        'password',
        createPasswordGrant({
          verify: state.password.verify,
          issue: state.tokens.issue,
          onWrongPassword: metrics.passwordFailed,
        }),
      ],
      ['refresh_token', createRefreshGrant(state.tokens.refresh)],
    ]),
  })
}
