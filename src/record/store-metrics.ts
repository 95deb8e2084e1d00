import type { MetricRegistry } from './metric-registry.ts'

/** The metrics of a shared store. They do not exist without one: a `store_up` of 0 would raise an alarm. */
export function createStoreMetrics({ gauge, histogram }: MetricRegistry) {
  const storeUp = gauge('store_up', 'Whether the shared store answers, and accepts what the sidecar asks.')()
  const duration = histogram(
    'store_duration_seconds',
    'Time from a question to the shared store to its answer.',
  )()
  return {
    up(up: boolean): void {
      storeUp.value = Number(up)
    },
    /** @param ms time until the answer */
    answered: (ms: number): void => duration.observe(ms / 1000),
  }
}
