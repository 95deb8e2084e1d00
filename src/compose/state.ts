import type { Config } from '../config/schema.ts'
import type { Endpoint } from '../http/admission.ts'
import { createWindowTable, type WindowTable } from '../limits/window-table.ts'
import { openLocalState } from '../tokens/local-state.ts'
import type { State, StateDependencies } from '../tokens/state.ts'

/** The windows of both endpoint types. */
export interface LimitTables extends Readonly<Record<Endpoint, WindowTable>> {
  /** The number of windows held. */
  sizes(): Record<Endpoint, number>
  /** An endpoint type whose policy differs from the present one gets new windows. */
  applyPolicy(limits: Pick<Config['limits'], Endpoint>): void
}

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
  const api = windows?.api ?? createWindowTable(limits.api, options)
  const oauth = windows?.oauth ?? createWindowTable(limits.oauth, options)
  return {
    state,
    tables: {
      api,
      oauth,
      sizes: () => ({ api: api.size, oauth: oauth.size }),
      applyPolicy(next) {
        api.applyPolicy(next.api)
        oauth.applyPolicy(next.oauth)
      },
    },
  }
}
