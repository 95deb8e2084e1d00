import type { Config } from '../config/schema.ts'
import type { Endpoint } from '../http/admission.ts'
import type { Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import type { Clock } from '../system/clock.ts'
import { type SharedStore, StoreUnavailable } from './shared-store.ts'
import { createSharedWindows, type SharedWindows } from './windows.ts'

export type LimitsConfig = Pick<Config['limits'], Endpoint | 'maxKeys' | 'store'>

export interface LimitTablesDependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'rateFallback'>
}

/** Creates shared windows. The log says when they fall back to local ones, and when they are back. */
export function createSharedTables(
  limits: LimitsConfig,
  store: SharedStore,
  { clock, log, metrics }: LimitTablesDependencies,
): Readonly<Record<Endpoint, SharedWindows>> {
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
    createSharedWindows(limits[endpoint], { store, endpoint, clock, maxKeys, onFallback, onAnswer })
  return { api: table('api'), oauth: table('oauth') }
}

/** What the log says of the reason. Only an error that is not the store's has a stack worth reading. */
function causeOf(error: unknown): object {
  if (error === undefined) return { reason: 'the shared store does not respond' }
  if (error instanceof StoreUnavailable) return { failure: error.failure, reason: error.message }
  return { err: error }
}
