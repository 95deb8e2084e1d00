import { limitsOf } from '../config/policy-fields.ts'
import type { Config } from '../config/schema.ts'
import type { FleetPlaces } from '../fleet/places.ts'
import { type GateSettings, judgeAnew } from '../gate/admit.ts'
import { createPreflight } from '../gate/cors.ts'
import type { LiveExchanges } from '../gate/live-exchanges.ts'
import { WINDOW_TYPES, type WindowType } from '../http/admission.ts'
import type { Refusal } from '../http/refusal.ts'
import { createWindowTable, type WindowTable } from '../limits/window-table.ts'
import { createBrowserLogin } from '../oauth/browser-login.ts'
import { createSessions, LOGIN_OFF, type Sessions } from '../oauth/sessions.ts'
import { slowLogins } from '../oauth/slow-logins.ts'
import {
  createPasswordGrant,
  createRefreshGrant,
  createRevocationEndpoint,
  createTokenEndpoint,
} from '../oauth/token-endpoint.ts'
import { nameOf } from '../record/access-log.ts'
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
export async function openState(
  config: Config,
  deps: StateDependencies,
): Promise<OpenState & Pick<Opened, 'places'>> {
  const { tokens, limits } = config
  const { state, windows, places }: Opened =
    typeof tokens.store === 'string'
      ? { state: await openLocalState(config, deps), windows: undefined, places: undefined }
      : // Loaded only here: a sidecar alone must not pay for the fleet at its start.
        await (await import('../fleet/open.ts')).openFleet(config, tokens.store, deps)
  const options = { clock: deps.clock, maxKeys: limits.maxKeys }
  const policies = limitsOf(config)
  const alone = (endpoint: WindowType): WindowTable => createWindowTable(policies[endpoint], options)
  return {
    state,
    places,
    tables: windows ?? { api: alone('api'), oauth: alone('oauth'), browser: alone('browser') },
  }
}

interface Opened {
  readonly state: State
  readonly windows: LimitTables | undefined
  readonly places: FleetPlaces | undefined
}

interface Reloaded extends OpenState {
  readonly live: LiveExchanges
  readonly sessions: Pick<Sessions, 'endAll'>
  readonly log: Logger
}

/**
 * Applies a reload to limits, tokens, sessions, and to the requests in flight, each of which is judged anew. Ends what the reload no longer
 * admits, the grants of names that are gone, and the sessions if the login of browsers is off.
 *
 * @param start the configuration at the start
 */
export async function applyToState(
  settings: GateSettings & { readonly config: Config },
  { passwords = [] }: Config,
  { state, tables, live, sessions, log }: Reloaded,
): Promise<void> {
  const { gate, config } = settings
  for (const type of WINDOW_TYPES) tables[type].applyPolicy(gate.limits[type])
  state.tokens.applyPolicy(config.tokens)
  logEnded(
    live.judgeAnew((exchange) => judgeAnew(exchange, settings)),
    log,
  )
  const gone = passwords.map(({ name }) => name).filter((name) => gate.scopes?.has(name) === false)
  const ended = gate.browser ? 0 : sessions.endAll(LOGIN_OFF)
  const owed = await revokeNames(gone, state.tokens)
  if (owed.length > 0) {
    log.error(
      { names: owed },
      'the shared store did not revoke the tokens of removed names: they end when it answers',
    )
    revokeLater(owed, state.tokens, log)
  }
  if ((await ended) === 'unavailable')
    log.error('the shared store did not revoke the tokens of the sessions that browser.login has ended')
}

/** Returns the names whose tokens the shared store did not revoke. */
async function revokeNames(names: readonly string[], { revoke }: State['tokens']): Promise<string[]> {
  const results = await Promise.all(names.map((name) => revoke({ name }, 'name_removed')))
  return names.filter((_, at) => results[at] === 'unavailable')
}

/** How long (ms) until a revocation that the shared store did not take is sent again. */
const AGAIN = 1_000

/**
 * Sends revocations again until the store takes them, also if a later reload brings a name back: its tokens are those of before. A login needs
 * the store, too, so at most one of the last second ends with them.
 */
function revokeLater(names: readonly string[], tokens: State['tokens'], log: Logger): void {
  const again = async (): Promise<void> => {
    const owed = await revokeNames(names, tokens)
    const done = names.filter((name) => !owed.includes(name))
    if (done.length > 0) log.warn({ names: done }, 'the tokens of removed names are revoked now')
    if (owed.length > 0) revokeLater(owed, tokens, log)
  }
  setTimeout(() => {
    again().catch((error: unknown) => log.error({ err: error }, 'tokens of removed names'))
  }, AGAIN).unref()
}

function logEnded(refusals: readonly Refusal[], log: Logger): void {
  if (refusals.length === 0) return
  const reasons = [...Map.groupBy(refusals, nameOf)].map(([name, all]) => [name, all.length])
  const line = { requests: refusals.length, reasons: Object.fromEntries(reasons) }
  log.warn(line, 'requests in flight ended: the new configuration does not admit them')
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
