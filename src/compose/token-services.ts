import type { Config } from '../config/schema.ts'
import type { OwnEndpoint } from '../http/admission.ts'
import {
  createPasswordGrant,
  createRefreshGrant,
  createRevocationEndpoint,
  createTokenEndpoint,
  type OwnEndpointHandler,
} from '../oauth/token-endpoint.ts'
import type { Metrics } from '../record/metrics.ts'
import type { State } from '../tokens/state.ts'

/** The sidecar's own endpoints: `/oauth/token` with its grant types, and revocation. */
export function tokenServices(
  { logIn, tokens }: State,
  metrics: Metrics,
  settings: { readonly config: Config },
): Readonly<Record<OwnEndpoint, OwnEndpointHandler>> {
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
    token: createTokenEndpoint(grants, settings),
    revocation: createRevocationEndpoint(tokens.revoke, settings),
  }
}
