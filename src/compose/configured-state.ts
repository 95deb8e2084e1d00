import type { Config } from '../config/schema.ts'
import type { SharedStore } from '../fleet/shared-store.ts'
import { openLocalState } from './local-state.ts'
import type { State, StateDependencies } from './state.ts'

/**
 * Opens the password source, and the tokens in the shared store, or in this process without one. Rejects with `SetupError` if the
 * password source or the state folder cannot be used.
 */
export async function openConfiguredState(
  config: Config,
  store: SharedStore | undefined,
  deps: StateDependencies,
): Promise<State> {
  if (store === undefined) return openLocalState(config, deps)
  // Loaded only here: a sidecar with a store of its own must not pay for the shared one at its start.
  const { openSharedState } = await import('./shared-state.ts')
  return openSharedState(config, store, deps)
}
