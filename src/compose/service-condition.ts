import { formatUpstreamUrl } from '../config/address.ts'
import type { ServiceConfig } from '../config/upstream-fields.ts'
import type { Breaker } from '../device/breaker.ts'
import type { Connections } from '../device/connections.ts'
import type { ServiceCondition } from '../overview/model.ts'
import type { UpstreamMetrics } from '../record/upstream-metrics.ts'
import type { Clock } from '../system/clock.ts'

export interface ServiceConditionDependencies {
  /** The path of a service of `upstream.routes`; undefined for the main service. */
  readonly route: string | undefined
  readonly service: ServiceConfig
  readonly metrics: Pick<UpstreamMetrics, 'watch'>
  readonly breaker: Pick<Breaker, 'open'>
  readonly connections: Pick<Connections, 'tolerant'>
  /** How many requests wait, in the longer of its queues. */
  readonly queued: () => number
  readonly clock: Clock
}

/** Watches a service of the device from now on. Returns its condition, which agrees with its metrics. */
export function watchService({
  route,
  service,
  metrics,
  breaker,
  connections,
  queued,
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
    url: formatUpstreamUrl(service.url),
    up,
    since,
    checked: service.health.path !== null,
    breaker: breaker.open ? 'open' : 'closed',
    failure,
    failedAt,
    tolerant: connections.tolerant,
    queue: { queued: queued(), size: service.queue.size, maxInFlight: service.maxInFlight },
  })
}
