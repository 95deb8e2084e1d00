import { limitsOf } from '../config/policy-fields.ts'
import type { Config } from '../config/schema.ts'
import type { GateSettings } from '../gate/admit.ts'
import { createPreflight } from '../gate/cors.ts'
import { credentialFault } from '../gate/credential.ts'
import type { LiveExchanges } from '../gate/live-exchanges.ts'
import { WINDOW_TYPES, type WindowType } from '../http/admission.ts'
import { createWindowTable, type WindowTable } from '../limits/window-table.ts'
import { createBrowserLogin } from '../oauth/browser-login.ts'
import { createSessions } from '../oauth/sessions.ts'
import { slowLogins } from '../oauth/slow-logins.ts'
import {
  createPasswordGrant,
  createRefreshGrant,
  createRevocationEndpoint,
  createTokenEndpoint,
} from '../oauth/token-endpoint.ts'
import type { Logger } from '../record/log.ts'
import { openLocalState } from '../tokens/local-state.ts'
import type { State, StateDependencies } from '../tokens/state.ts'

/** The windows of all endpoint types. */
export type LimitTables = Readonly<Record<WindowType, WindowTable>>

interface OpenState {
  readonly state: State
  readonly tables: LimitTables
}

/**
 * Opens the password source, the tokens and the windows: in the shared store that `tokens.store` names, or in this process without
 * one. Rejects with `SetupError` if the password source or the state folder cannot be used.
 */
export async function openState(config: Config, deps: StateDependencies): Promise<OpenState> {
  const { tokens, limits } = config
  const { state, windows = undefined } =
    typeof tokens.store === 'string'
      ? { state: await openLocalState(config, deps) }
      : // Loaded only here: a sidecar alone must not pay for the fleet at its start.
        await (await import('../fleet/open.ts')).openFleet(config, tokens.store, deps)
  const options = { clock: deps.clock, maxKeys: limits.maxKeys }
  const policies = limitsOf(config)
  const alone = (endpoint: WindowType): WindowTable => createWindowTable(policies[endpoint], options)
  return { state, tables: windows ?? { api: alone('api'), oauth: alone('oauth'), browser: alone('browser') } }
}

/**
 * Applies a reload to limits and tokens. Ends what it no longer allows: the grants of names that are gone, and requests in flight that
 * their name may no longer make.
 *
 * @param start the configuration at the start
 */
export async function applyToState(
  { gate, config }: Pick<GateSettings, 'gate'> & { readonly config: Config },
  { passwords = [] }: Config,
  { state, tables, live, log }: OpenState & { readonly live: LiveExchanges; readonly log: Logger },
): Promise<void> {
  for (const type of WINDOW_TYPES) tables[type].applyPolicy(gate.limits[type])
  state.tokens.applyPolicy(config.tokens)
  const gone = passwords.map(({ name }) => name).filter((name) => gate.scopes?.has(name) === false)
  const revoked = gone.map((name) => state.tokens.revoke({ name }, 'name_removed'))
  if (gate.scopes !== undefined) live.judgeAnew((exchange) => credentialFault(exchange, gate))
  if ((await Promise.all(revoked)).includes('unavailable'))
    log.error({ names: gone }, 'the shared store did not revoke the tokens of removed names')
}

/** The sidecar's own endpoints, such as `/oauth/token` with its grant types, and the sessions of browsers. */
export function tokenServices(
  { logIn, tokens }: State,
  { metrics, clock, live }: Pick<StateDependencies, 'metrics' | 'clock'> & { readonly live: LiveExchanges },
  settings: Pick<GateSettings, 'gate'> & { readonly config: Config },
) {
  const slowed = slowLogins(logIn, { clock, settings, grants: tokens.grants, onSlowed: metrics.loginSlowed })
  const password = createPasswordGrant(slowed, metrics.passwordFailed, metrics.upstream(undefined).failed)
  const grants = [password, createRefreshGrant(tokens.refresh)]
  for (const { name } of grants) metrics.tokensIssued(name, 0)
  const sessions = createSessions(tokens, live.handOver)
  const { login, logout, withPage } = createBrowserLogin(password, sessions, settings)
  return {
    credentials: { identify: tokens.identify, sessions },
    withPage,
    ownEndpoints: {
      token: createTokenEndpoint(grants, settings),
      revocation: createRevocationEndpoint(tokens.revoke, settings),
      login,
      logout,
      preflight: createPreflight(settings),
    },
  }
}
