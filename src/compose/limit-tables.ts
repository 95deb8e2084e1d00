import type { Config } from '../config/schema.ts'
import type { Endpoint } from '../http/admission.ts'
import { createSharedWindows, type SharedWindows } from '../limits/shared-windows.ts'
import { createWindowTable } from '../limits/window-table.ts'
import type { Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import { type SharedStore, StoreUnavailable } from '../store/shared-store.ts'
import type { Clock } from '../system/clock.ts'

type Limits = Config['limits']

/** The windows of both endpoint types. */
export interface LimitTables extends Readonly<Record<Endpoint, SharedWindows>> {
  /** The number of windows held. */
  sizes(): Record<Endpoint, number>
  /** An endpoint type whose policy differs from the present one gets new windows. */
  applyPolicy(limits: Pick<Limits, Endpoint>): void
}

interface LimitTablesDependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'rateFallback'>
  /** The store of `limits.store: shared`; undefined if the sidecar has none. */
  readonly store: SharedStore | undefined
}

/** Creates the tables for both endpoint types. The log says when shared windows fall back to local ones, and when they are back. */
export function createLimitTables(
  limits: Pick<Limits, Endpoint | 'maxKeys' | 'store'>,
  { clock, log, metrics, store }: LimitTablesDependencies,
): LimitTables {
  const { maxKeys } = limits
  /** When a request was last counted alone; undefined while the windows are shared. */
  let fellBackAt: number | undefined

  function onFallback(endpoint: Endpoint, error?: unknown): void {
    metrics.rateFallback(endpoint)
    if (fellBackAt === undefined) log.warn(causeOf(error), 'rate limits: each sidecar counts alone')
    fellBackAt = clock.monotonic()
  }

  function onAnswer(askedAt: number): void {
    if (fellBackAt === undefined || askedAt < fellBackAt) return
    fellBackAt = undefined
    log.info('rate limits: the sidecars share their windows again')
  }

  const table = (endpoint: Endpoint): SharedWindows =>
    limits.store === 'local' || store === undefined
      ? createWindowTable(limits[endpoint], { clock, maxKeys })
      : createSharedWindows(limits[endpoint], { store, endpoint, clock, maxKeys, onFallback, onAnswer })
  const tables = { api: table('api'), oauth: table('oauth') }

  return {
    ...tables,
    sizes: () => ({ api: tables.api.size, oauth: tables.oauth.size }),
    applyPolicy(next) {
      tables.api.applyPolicy(next.api)
      tables.oauth.applyPolicy(next.oauth)
    },
  }
}

/** What the log says of the reason. Only an error that is not the store's has a stack worth reading. */
function causeOf(error: unknown): object {
  if (error === undefined) return { reason: 'the shared store does not respond' }
  if (error instanceof StoreUnavailable) return { failure: error.failure, reason: error.message }
  return { err: error }
}
