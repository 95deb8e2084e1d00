import type { Config } from '../config/schema.ts'
import type { Endpoint, OwnEndpoint } from '../http/admission.ts'
import { createWindowTable, type WindowTable } from '../limits/window-table.ts'
import { slowLogins } from '../oauth/slow-logins.ts'
import {
  createPasswordGrant,
  createRefreshGrant,
  createRevocationEndpoint,
  createTokenEndpoint,
  type OwnEndpointHandler,
} from '../oauth/token-endpoint.ts'
import { openLocalState } from '../tokens/local-state.ts'
import type { State, StateDependencies } from '../tokens/state.ts'

/** The windows of both endpoint types. */
export type LimitTables = Readonly<Record<Endpoint, WindowTable>>

/**
 * Opens the password source, the tokens and the windows: in the shared store that `tokens.store` names, or in this process without
 * one. Rejects with `SetupError` if the password source or the state folder cannot be used.
 */
export async function openState(
  config: Config,
  deps: StateDependencies,
): Promise<{ readonly state: State; readonly tables: LimitTables }> {
  const { tokens, limits } = config
  const { state, windows = undefined } =
    typeof tokens.store === 'string'
      ? { state: await openLocalState(config, deps) }
      : // Loaded only here: a sidecar alone must not pay for the fleet at its start.
        await (await import('../fleet/open.ts')).openFleet(config, tokens.store, deps)
  const options = { clock: deps.clock, maxKeys: limits.maxKeys }
  const alone = (endpoint: Endpoint): WindowTable => createWindowTable(limits[endpoint], options)
  return { state, tables: windows ?? { api: alone('api'), oauth: alone('oauth') } }
}

/** The sidecar's own endpoints: `/oauth/token` with its grant types, and revocation. */
export function tokenServices(
  { logIn, tokens }: State,
  { metrics, clock }: Pick<StateDependencies, 'metrics' | 'clock'>,
  settings: { readonly config: Config },
): Readonly<Record<OwnEndpoint, OwnEndpointHandler>> {
  const grants = [
    createPasswordGrant({
      logIn: slowLogins(logIn, { clock, settings, grants: tokens.grants, onSlowed: metrics.loginSlowed }),
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
