import { limitsOf } from '../config/policy-fields.ts'
import type { Config } from '../config/schema.ts'
import type { FleetDependencies } from '../fleet/open.ts'
import type { FleetPlaces } from '../fleet/places.ts'
import { type GateSettings, judgeAnew } from '../gate/admit.ts'
import { createPreflight } from '../gate/cors.ts'
import type { LiveExchanges } from '../gate/live-exchanges.ts'
import { WINDOW_TYPES, type WindowType } from '../http/admission.ts'
import type { Refusal } from '../http/refusal.ts'
import { createOwnWindows } from '../limits/own-windows.ts'
import { createWindowTable, type WindowTable } from '../limits/window-table.ts'
import { createBrowserLogin } from '../oauth/browser-login.ts'
import { createSessions, type Sessions } from '../oauth/browser-sessions.ts'
import type { FormSettings } from '../oauth/form-request.ts'
import type { LoginHistory } from '../oauth/login-history.ts'
import { slowLogins } from '../oauth/slow-logins.ts'
import {
  createPasswordGrant,
  createRefreshGrant,
  createRevocationEndpoint,
  createTokenEndpoint,
} from '../oauth/token-endpoint.ts'
import type { StoreCondition } from '../overview/model.ts'
import type { DevicePassword } from '../password/device-source.ts'
import type { Replacement } from '../password/sources.ts'
import { refusalName } from '../record/access-log.ts'
import type { Logger } from '../record/log.ts'
import { ISSUED, type IssuedGrant } from '../tokens/handout.ts'
import type { HandOut, LogIn } from '../tokens/issuing.ts'
import { type LocalDependencies, openLocalState } from '../tokens/local-state.ts'
import type { End } from '../tokens/revocation.ts'
import type { Tokens } from '../tokens/token-store.ts'

/** The windows of all endpoint types. */
export type LimitTables = Readonly<Record<WindowType, WindowTable>>

/** The password and the tokens issued for it, in this process or in a shared store: a password change revokes the tokens (C8). */
export interface State {
  readonly logIn: LogIn
  readonly handOut: HandOut
  /** The live issued grants. With a shared store, those in its last answer: the sidecar asks every ten seconds. */
  issued(): readonly IssuedGrant[]
  readonly tokens: Tokens
  readonly end: End
  /** The source of the password. `replace`: as in `openPassword`. */
  readonly password: Pick<DevicePassword, 'state'> & {
    readonly replace: (next: Config, limit: number) => Promise<Replacement>
  }
  /** In this process: the number of live tokens that a restart would lose; undefined without a token file. */
  unsaved?(): number | undefined
  /** In this process: when a token file was last set aside (ms, wall clock); undefined if none was. */
  setAsideAt?(): number | undefined
  /** In this process: when the token file was found to be a copy (ms, wall clock); undefined if no token of a copy is left. */
  copiedAt?(): number | undefined
  /** Only with a shared store. */
  store?(): StoreCondition
  /** Only with a shared store: why this sidecar cannot issue tokens; empty if it can. */
  troubles?(): readonly string[]
  close(): Promise<void>
}

interface OpenState {
  readonly state: State
  readonly tables: LimitTables
}

/**
 * Opens the password source, the tokens and the windows: in the shared store that `tokens.store` names, or in this process without
 * one. Rejects with `SetupError` if the password source or the state folder cannot be used.
 */
export async function openState(
  config: Config,
  deps: LocalDependencies & FleetDependencies,
): Promise<OpenState & Pick<Opened, 'places'>> {
  const { tokens, limits } = config
  const { state, windows, places }: Opened =
    typeof tokens.store === 'string'
      ? { state: await openLocalState(config, deps), windows: undefined, places: undefined }
      : // Loaded only here: a sidecar without a fleet must not pay for its code at the start.
        await (await import('../fleet/open.ts')).openFleet(config, tokens.store, deps)
  const options = { clock: deps.clock, maxKeys: limits.maxKeys }
  const policies = limitsOf(config)
  const localTable = (endpoint: WindowType): WindowTable =>
    createOwnWindows(policies[endpoint], (policy) => createWindowTable(policy, options))
  return {
    state,
    places,
    tables: windows ?? { api: localTable('api'), oauth: localTable('oauth'), browser: localTable('browser') },
  }
}

interface Opened {
  readonly state: State
  readonly windows: LimitTables | undefined
  readonly places: FleetPlaces | undefined
}

export interface Reloaded extends OpenState {
  readonly live: LiveExchanges
  readonly sessions: Pick<Sessions, 'open' | 'close'>
  readonly log: Logger
}

/**
 * Applies a reload to limits, tokens, sessions and requests in flight. Judges each of these requests anew and ends those that the reload
 * does not admit. Ends the grants of removed names, and all sessions if the login of browsers is off.
 *
 * @param before the names before the reload
 */
export async function applyToState(
  settings: GateSettings & { readonly config: Config },
  before: readonly string[],
  { state, tables, live, sessions, log }: Reloaded,
): Promise<void> {
  const { gate, config } = settings
  for (const type of WINDOW_TYPES) tables[type].applyPolicy(gate.limits[type], config.limits.maxKeys)
  state.tokens.applyPolicy(config.tokens)
  logEnded(
    live.judgeAnew((exchange) => judgeAnew(exchange, settings)),
    log,
  )
  const removed = before.filter((name) => gate.scopes?.has(name) === false)
  const done = await Promise.all([
    ...removed.map((name) => state.end({ name }, NAME_REMOVED)),
    gate.browser ? sessions.open() : sessions.close(),
  ])
  if (done.includes(false)) log.error(removed.length === 0 ? {} : { names: removed }, OWED)
}

/** The reason for which the tokens of a removed name end: a value of the `reason` label of `postern_tokens_revoked_total`. */
const NAME_REMOVED = 'name_removed'

const OWED =
  'the shared store did not revoke the tokens of removed names or ended sessions: they end when it does'

function logEnded(refusals: readonly Refusal[], log: Logger): void {
  if (refusals.length === 0) return
  const reasons = [...Map.groupBy(refusals, refusalName)].map(([name, all]) => [name, all.length])
  const line = { requests: refusals.length, reasons: Object.fromEntries(reasons) }
  log.warn(line, 'requests in flight ended: the new configuration does not admit them')
}

/** The sidecar's own endpoints, such as `/oauth/token` with its grant types, and the sessions of browsers. */
export function tokenServices(
  { logIn, tokens, end }: State,
  {
    metrics,
    clock,
    live,
    history,
  }: Pick<FleetDependencies, 'metrics' | 'clock'> & {
    readonly live: LiveExchanges
    readonly history: LoginHistory
  },
  settings: Pick<GateSettings, 'gate'> & FormSettings & { readonly config: Config },
) {
  const recorded = history.recorded(logIn, tokens)
  const slowed = slowLogins(recorded, { clock, settings, history, onSlowed: metrics.loginSlowed })
  const password = createPasswordGrant(slowed, metrics.passwordFailed, metrics.upstream(undefined).failed)
  const grants = [password, createRefreshGrant(tokens.refresh, history.refreshed)]
  for (const name of [...grants.map((each) => each.name), ISSUED]) metrics.tokensIssued(name, 0)
  const sessions = createSessions({ ...tokens, end }, { clock, live, settings })
  const { login, logout, pageFor } = createBrowserLogin(password, sessions, settings, clock)
  return {
    credentials: { identify: tokens.identify, sessions },
    loginPageFor: pageFor,
    ownEndpoints: {
      token: createTokenEndpoint(grants, settings, clock),
      revocation: createRevocationEndpoint(tokens.revoke, settings, clock),
      login,
      logout,
      preflight: createPreflight(settings),
    },
  }
}
