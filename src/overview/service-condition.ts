import type { UpstreamMetrics } from '../record/upstream-metrics.ts'
import type { Clock } from '../system/clock.ts'
import type { ServiceCondition } from './model.ts'

export interface ServiceConditionDependencies {
  /** The path of a service of `upstream.routes`; undefined for the main service. */
  readonly route: string | undefined
  readonly url: string
  /** Whether it has a health check. */
  readonly checked: boolean
  readonly metrics: Pick<UpstreamMetrics, 'watch'>
  readonly breaker: { readonly open: boolean }
  readonly connections: { readonly tolerant: ServiceCondition['tolerant'] }
  readonly queue: () => ServiceCondition['queue']
  readonly clock: Clock
}

/** Watches a service of the device from now on. Returns its condition, which agrees with its metrics. */
export function watchService({
  route,
  url,
  checked,
  metrics,
  breaker,
  connections,
  queue,
  clock,
}: ServiceConditionDependencies): () => ServiceCondition {
  let up: boolean | null = null
  let since: number | null = null
  let failure: string | null = null
  let failedAt: number | null = null
  metrics.watch({
    up(next) {
      up = next
      since = clock.wall()
    },
    failed(reason) {
      failure = reason
      failedAt = clock.wall()
    },
  })
  return () => ({
    route: route ?? null,
    url,
    up,
    since,
    checked,
    breaker: breaker.open ? 'open' : 'closed',
    failure,
    failedAt,
    tolerant: connections.tolerant,
    queue: queue(),
  })
}
