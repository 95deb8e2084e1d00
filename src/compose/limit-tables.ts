import type { SharedStore } from '../fleet/shared-store.ts'
import type { LimitsConfig, LimitTablesDependencies } from '../fleet/windows.ts'
import type { Endpoint } from '../http/admission.ts'
import { createWindowTable, type WindowTable } from '../limits/window-table.ts'

/** The windows of both endpoint types. */
export interface LimitTables extends Readonly<Record<Endpoint, WindowTable>> {
  /** The number of windows held. */
  sizes(): Record<Endpoint, number>
  /** An endpoint type whose policy differs from the present one gets new windows. */
  applyPolicy(limits: Pick<LimitsConfig, Endpoint>): void
}

/**
 * Opens the tables for both endpoint types.
 *
 * @param store the store of `limits.store: shared`; undefined if the sidecar has none
 */
export async function openLimitTables(
  limits: LimitsConfig,
  store: SharedStore | undefined,
  deps: LimitTablesDependencies,
): Promise<LimitTables> {
  const { api, oauth } = await openTables(limits, store, deps)
  return {
    api,
    oauth,
    sizes: () => ({ api: api.size, oauth: oauth.size }),
    applyPolicy(next) {
      api.applyPolicy(next.api)
      oauth.applyPolicy(next.oauth)
    },
  }
}

async function openTables(
  limits: LimitsConfig,
  store: SharedStore | undefined,
  deps: LimitTablesDependencies,
): Promise<Readonly<Record<Endpoint, WindowTable>>> {
  if (limits.store === 'local' || store === undefined) {
    const options = { clock: deps.clock, maxKeys: limits.maxKeys }
    return { api: createWindowTable(limits.api, options), oauth: createWindowTable(limits.oauth, options) }
  }
  // Loaded only here: a sidecar that counts alone must not pay for it at its start.
  const { createSharedTables } = await import('../fleet/windows.ts')
  return createSharedTables(limits, store, deps)
}
