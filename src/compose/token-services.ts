import type { Config } from '../config/schema.ts'
import type { OwnEndpoint } from '../http/admission.ts'
import { createPasswordGrant } from '../oauth/password-grant.ts'
import { createRefreshGrant } from '../oauth/refresh-grant.ts'
import { createRevocationEndpoint } from '../oauth/revocation-endpoint.ts'
import { createTokenEndpoint, type OwnEndpointHandler } from '../oauth/token-endpoint.ts'
import type { Metrics } from '../record/metrics.ts'
import type { State } from '../tokens/state.ts'

/** The sidecar's own endpoints: `/oauth/token` with its grant types, and revocation. */
export function tokenServices(
  { logIn, tokens }: State,
  metrics: Metrics,
  config: () => Config,
): Readonly<Record<OwnEndpoint, OwnEndpointHandler>> {
  const bodyTimeout = (): number => config().listen.bodyTimeout
  const grants = [
    createPasswordGrant({
      logIn,
      onWrongPassword: metrics.passwordFailed,
      onUnavailable: metrics.upstream(undefined).failed,
    }),
    createRefreshGrant(tokens.refresh),
  ]
  for (const { name } of grants) metrics.tokensIssued(name, 0)
  return {
    token: createTokenEndpoint({ bodyTimeout, grants }),
    revocation: createRevocationEndpoint({
      bodyTimeout,
      revoke: (token) => tokens.revoke({ token }, 'client'),
    }),
  }
}
