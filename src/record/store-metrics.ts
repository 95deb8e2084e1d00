import type { MetricRegistry } from './metric-registry.ts'

/** The connection to the store that several sidecars share. */
export interface StoreMetrics {
  up(up: boolean): void
  /** @param duration time until the answer (ms) */
  answered(duration: number): void
}

/** The metrics of a shared store. Without one they do not exist: a `store_up` of 0 would raise an alarm. */
export function createStoreMetrics({ gauge, histogram }: MetricRegistry): StoreMetrics {
  const storeUp = gauge('store_up', 'Whether the shared store answers, and accepts what the sidecar asks.')
  const duration = histogram(
    'store_duration_seconds',
    'Time from a question to the shared store to its answer.',
  ).series()
  return {
    up: (up) => storeUp.set(up ? 1 : 0),
    answered: (ms) => duration.observe(ms / 1000),
  }
}
