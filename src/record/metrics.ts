import type { WindowType } from '../http/admission.ts'
import { type Clock, systemClock } from '../system/clock.ts'
import { createConnectionMetrics } from './connection-metrics.ts'
import { createMetricRegistry, type MetricRegistry, seriesOf } from './metric-registry.ts'
import { processMetrics } from './process-metrics.ts'
import { createRequestMetrics } from './request-metrics.ts'
import { createStoreMetrics } from './store-metrics.ts'
import { createTokenMetrics, type TokenCounts } from './token-metrics.ts'
import { createUpstreamMetrics, type DeviceLoad } from './upstream-metrics.ts'

interface ScrapeSources extends TokenCounts {
  readonly windows: (endpoint: WindowType) => number
  readonly upstream: () => DeviceLoad
  readonly memory: HeldMemory
}

/** The memory that clients make the process hold (bytes), and its limit. */
interface HeldMemory {
  readonly sums: Readonly<Record<string, number>>
  readonly limit: number
}

export type Metrics = ReturnType<typeof createMetrics>
export type Totals = ReturnType<Metrics['totals']>

/** Every family of `/metrics`, and the functions that count. Each part registers its own families and holds their series. */
export function createMetrics(
  built: { readonly version: string; readonly node: string },
  clock: Clock = systemClock,
) {
  const registry = createMetricRegistry(processMetrics())
  const { counter, gauge } = registry
  let sources: ScrapeSources | undefined

  const requests = createRequestMetrics(registry, (endpoint) => sources?.windows(endpoint) ?? 0)
  const upstream = createUpstreamMetrics(registry, () => sources?.upstream(), clock)
  const tokens = createTokenMetrics(registry, () => sources)
  const connections = createConnectionMetrics(registry)
  const memory = createMemoryMetrics(registry, () => sources?.memory)
  const certificate = createCertificateMetrics(registry)
  const storeErrors = counter('store_errors_total', 'Failures of a store.', ['store', 'operation'])
  const reloads = seriesOf(counter('config_reloads_total', 'Configuration reloads, by result.', ['result']), [
    'success',
    'failure',
  ])
  gauge('build_info', 'Version of Postern and of Node.', ['version', 'node'])(
    built.version,
    built.node,
  ).value = 1

  return {
    exchange: requests.exchange,
    refused: requests.refused,
    rateFallback: requests.rateFallback,
    wouldRefuse: requests.wouldRefuse,
    /** @param route the path of a route's service; undefined for the device's main service */
    upstream: upstream.service,
    ...tokens,
    connections: connections.events,
    ...memory,
    ...certificate,
    /** Creates a series for each operation of a store, at 0: `increase()` of Prometheus misses the first event of a new series. */
    storeOpened(store: string, operations: readonly string[]): void {
      for (const operation of operations) storeErrors(store, operation)
    },
    storeFailed: (store: string, operation: string): void => storeErrors(store, operation).add(),
    /** Creates the metrics of a shared store. Call it at most once. */
    sharedStore: () => createStoreMetrics(registry),
    configReloaded: (result: 'success' | 'failure'): void => reloads[result].add(),
    /** Sums since the start, and the present numbers of open connections and tunnels. */
    totals: () => ({
      ...requests.totals(),
      /** The device's response heads by duration, in the buckets of `BOUNDS`. */
      device: [...upstream.durations],
      /** Open connections and tunnels at present. */
      connections: connections.open(),
      tunnels: upstream.tunnels.value,
    }),
    setScrapeSources(next: ScrapeSources): void {
      sources = next
    },
    contentType: registry.contentType,
    text: registry.text,
  }
}

/** The memory that clients make the process hold. `held` is asked on each scrape. */
function createMemoryMetrics(
  { counter, readGauge, readGauges }: MetricRegistry,
  held: () => HeldMemory | undefined,
) {
  readGauges(
    'memory_bytes',
    'What clients make the process hold, as it is charged to them, by what it is.',
    'of',
    () => held()?.sums ?? {},
  )
  readGauge(
    'memory_limit_bytes',
    'The most that clients may make the process hold: `listen.memory`.',
    () => held()?.limit,
  )
  const shed = counter(
    'shed_total',
    'What clients were refused, or lost, because they hold much, by stage and by what it is.',
    ['stage', 'what'],
  )
  for (const stage of ['shares', 'grants'])
    for (const what of ['connection', 'stream', 'request']) shed(stage, what)
  return {
    /** A client was refused something, or lost it, because of the memory that clients hold. */
    shed: (stage: string, what: string): void => shed(stage, what).add(),
  }
}

/** The families have no sample without TLS: there is no certificate, and a 0 would mean 1970. */
function createCertificateMetrics({ gauge }: MetricRegistry) {
  const from = gauge(
    'certificate_not_before_timestamp_seconds',
    'Unix time at which the served certificate becomes valid; of a chain, the last to do so.',
  )
  const until = gauge(
    'certificate_expiry_timestamp_seconds',
    'Unix time at which the served certificate expires; of a chain, the first to do so.',
  )
  return {
    /** The validity of the served certificate, in ms since the Unix epoch. */
    certificateServed(notBefore: number, notAfter: number): void {
      from().value = notBefore / 1000
      until().value = notAfter / 1000
    },
  }
}
