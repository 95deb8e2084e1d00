import type { WindowType } from '../http/admission.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import { createMetricRegistry, type MetricRegistry } from './metric-registry.ts'
import { createNameCounts } from './name-counts.ts'
import { createRefusalCounts, createTally, drain, REFUSAL_REASONS, type Totals } from './tally.ts'
import {
  createStoreMetrics,
  createUpstreamMetrics,
  type DeviceLoad,
  type StoreMetrics,
  type UpstreamMetrics,
} from './upstream-metrics.ts'

export type { Sample } from './tally.ts'

interface ScrapeSources {
  readonly tokens: () => { readonly access: number; readonly refresh: number }
  /** Live tokens that are not in the token file and that a restart would lose; undefined for `tokens.store: memory`. */
  readonly unsaved: () => number | undefined
  readonly windows: (endpoint: WindowType) => number
  readonly upstream: () => DeviceLoad
}

export interface Metrics {
  readonly totals: Totals
  /** Counts an exchange that has ended. */
  exchange(exchange: Exchange): void
  /** Counts a refusal that belongs to no exchange record. */
  refused(refusal: Refusal): void
  /** The shared store did not answer, so this sidecar alone counted a request. */
  rateFallback(endpoint: WindowType): void
  passwordFailed(): void
  loginSlowed(): void
  /** @param responses 0 creates the series of a grant type before its first use */
  tokensIssued(grant: string, responses?: number): void
  tokensRevoked(reason: string, grants: number): void
  tokensEvicted(kind: 'access' | 'refresh', count: number): void
  /** Gives each operation of a store a series of 0: `increase()` does not see the first event of a new series. */
  storeOpened(store: string, operations: readonly string[]): void
  storeFailed(store: string, operation: string): void
  configReloaded(result: 'success' | 'failure'): void
  /** The validity of the served certificate, in ms since the Unix epoch. */
  certificateServed(from: number, until: number): void
  /** Events of the public listener's connections. A reason is the name of the configuration key of the cap. */
  readonly connections: {
    connection(protocol: string, change: 1 | -1): void
    refused(reason: string): void
    overused(reason: string): void
    handshakeFailed(reason: string): void
  }
  /** @param route the path of a route's service; undefined for the device's main service */
  upstream(route: string | undefined): UpstreamMetrics
  /** Creates the metrics of a shared store. Call it at most once. */
  sharedStore(): StoreMetrics
  setScrapeSources(sources: ScrapeSources): void
  readonly contentType: string
  /** The exposition text. */
  text(): Promise<string>
  /** The samples of the text as values. */
  readonly snapshot: MetricRegistry['snapshot']
}

export function createMetrics(built: { readonly version: string; readonly node: string }): Metrics {
  const registry = createMetricRegistry()
  const { counter, gauge, histogram } = registry
  const requests = createTally()
  const bytes = { request: 0, response: 0 }
  let serverErrors = 0
  let sources: ScrapeSources | undefined

  counter(
    'requests_total',
    'Requests that have ended, by endpoint type, method and status code.',
    ['endpoint', 'method', 'code'],
    (counted) => requests.drain((labels, amount) => counted.labels(...labels).inc(amount)),
  )
  counter('request_bytes_total', 'Bytes of request bodies and tunnels read from clients.', [], (counted) => {
    counted.inc(bytes.request)
    bytes.request = 0
  })
  counter('response_bytes_total', 'Bytes of response bodies and tunnels sent to clients.', [], (counted) => {
    counted.inc(bytes.response)
    bytes.response = 0
  })
  const requestDuration = histogram(
    'request_duration_seconds',
    'Time from the request head to the end of the response.',
  )
  /** `browser` has series from its first request on: without `browser.login` there is none. */
  const shown: WindowType[] = ['api', 'oauth']
  const durations = {
    api: requestDuration.series({ endpoint: 'api' }),
    oauth: requestDuration.series({ endpoint: 'oauth' }),
    browser: requestDuration.series({ endpoint: 'browser' }, () => shown.includes('browser')),
  }
  const countName = createNameCounts(registry)
  const upstream = createUpstreamMetrics(registry, () => sources?.upstream())
  const refusals = createRefusalCounts()
  counter(
    'refusals_total',
    'Refusals, by reason, of bytes that are no valid request too. With `enforce: false` also those that would have been.',
    ['reason'],
    (counted) => {
      counted.reset()
      for (const reason of REFUSAL_REASONS) counted.inc({ reason }, refusals.counts[reason])
    },
  )
  const rateLimited = { api: 0, oauth: 0, browser: 0 }
  counter('rate_limited_total', 'Requests refused with 429.', ['endpoint'], (counted) =>
    drain(rateLimited, (endpoint, amount) => shown.includes(endpoint) && counted.inc({ endpoint }, amount)),
  )
  gauge('rate_windows', 'Rate limit windows held.', ['endpoint'], (g) => {
    for (const endpoint of shown) g.set({ endpoint }, sources?.windows(endpoint) ?? 0)
  })
  const fallbacks = counter(
    'rate_fallback_total',
    'Requests counted by this sidecar alone because the shared store did not answer.',
    ['endpoint'],
  )
  const authFailures = { missing: 0, malformed: 0, unknown: 0, expired: 0, revoked: 0 }
  counter('auth_failures_total', 'Requests refused with 401, by reason.', ['reason'], (counted) =>
    drain(authFailures, (reason, amount) => counted.inc({ reason }, amount)),
  )
  const passwordFailures = counter('password_failures_total', 'Password grants with a wrong password.')
  const slowedLogins = counter(
    'logins_slowed_total',
    'Logins that waited because of wrong passwords before them.',
  )
  gauge('tokens', 'Live tokens.', ['kind'], (g) => {
    for (const kind of ['access', 'refresh'] as const) g.set({ kind }, sources?.tokens()[kind] ?? 0)
  })
  gauge(
    'tokens_unsaved',
    'Live tokens that are missing in the token file because writing it failed. A restart would lose them.',
    [],
    (g) => {
      const unsaved = sources?.unsaved()
      if (unsaved === undefined) g.remove()
      else g.set(unsaved)
    },
  )
  const issued = counter('tokens_issued_total', 'Token responses, by grant type.', ['grant'])
  const revoked = counter('tokens_revoked_total', 'Grants revoked with all tokens, by reason.', ['reason'])
  const evicted = counter('tokens_evicted_total', 'Tokens dropped because the store was full.', ['kind'])
  const storeErrors = counter('store_errors_total', 'Failures of a store.', ['store', 'operation'])
  const reloads = counter('config_reloads_total', 'Configuration reloads, by result.', ['result'])
  const certificateFrom = gauge(
    'certificate_not_before_timestamp_seconds',
    'Unix time at which the served certificate becomes valid; of a chain, the last to do so.',
  )
  const certificateUntil = gauge(
    'certificate_expiry_timestamp_seconds',
    'Unix time at which the served certificate expires; of a chain, the first to do so.',
  )
  // Without TLS there is no certificate. A sample of 0 would mean 1970, so there is none.
  for (const bound of [certificateFrom, certificateUntil]) bound.remove()
  const connections = gauge('connections', 'Open client connections.', ['protocol'])
  let openConnections = 0
  const refused = counter(
    'connections_refused_total',
    'Client connections closed on arrival, by the cap that was reached.',
    ['reason'],
  )
  const overused = counter(
    'connections_cut_total',
    'HTTP/2 sessions and responses aborted because the client exceeded a cap, by cap.',
    ['reason'],
  )
  const handshakes = counter('handshakes_failed_total', 'Failed TLS handshakes, by cause.', ['reason'])
  gauge('build_info', 'Version of Postern and of Node.', ['version', 'node']).set(built, 1)

  for (const endpoint of shown) fallbacks.inc({ endpoint }, 0)
  for (const result of ['success', 'failure']) reloads.inc({ result }, 0)
  for (const kind of ['access', 'refresh']) evicted.inc({ kind }, 0)
  const reasonsOf = [
    [refused, 'max_connections', 'max_connections_per_client', 'not_allowed'],
    [overused, 'max_resets', 'max_control_frames', 'max_queued_bytes', 'protocol_error'],
    [handshakes, 'handshake_timeout', 'client_left', 'plain_http', 'tls_error'],
  ] as const
  for (const [counted, ...reasons] of reasonsOf) for (const reason of reasons) counted.inc({ reason }, 0)
  for (const protocol of ['http/1.1', 'h2']) connections.set({ protocol }, 0)

  return {
    totals: {
      requests: [durations.api.counts, durations.oauth.counts, durations.browser.counts],
      device: upstream.durations,
      refusals: refusals.counts,
      get serverErrors() {
        return serverErrors
      },
      get connections() {
        return openConnections
      },
      get tunnels() {
        return upstream.tunnels
      },
    },
    exchange(exchange) {
      const { head, endpoint, refusal, wouldRefuse, status, duration } = exchange
      const gateRefusal = refusal ?? wouldRefuse
      if (!shown.includes(endpoint)) shown.push(endpoint)
      requests.add(endpoint, head.method, status)
      durations[endpoint].observe(duration / 1000)
      if (status >= 500) serverErrors += 1
      bytes.request += exchange.requestBytes
      bytes.response += exchange.responseBytes
      if (exchange.scope !== undefined || refusal?.kind === 'insufficient-scope') countName(exchange)
      if (gateRefusal === undefined) return
      refusals.add(gateRefusal)
      const { kind } = gateRefusal
      if (kind === 'rate-limited' || kind === 'wrong-passwords') rateLimited[endpoint] += 1
      if (gateRefusal.kind === 'unauthorized') authFailures[gateRefusal.cause] += 1
    },
    refused: refusals.add,
    rateFallback: (endpoint) => fallbacks.inc({ endpoint }),
    passwordFailed: () => passwordFailures.inc(),
    loginSlowed: () => slowedLogins.inc(),
    tokensIssued: (grant, responses = 1) => issued.inc({ grant }, responses),
    tokensRevoked: (reason, grants) => revoked.inc({ reason }, grants),
    tokensEvicted: (kind, count) => evicted.inc({ kind }, count),
    storeOpened(store, operations) {
      for (const operation of operations) storeErrors.inc({ store, operation }, 0)
    },
    storeFailed: (store, operation) => storeErrors.inc({ store, operation }),
    configReloaded: (result) => reloads.inc({ result }),
    certificateServed(from, until) {
      certificateFrom.set(from / 1000)
      certificateUntil.set(until / 1000)
    },
    connections: {
      connection(protocol, change) {
        openConnections += change
        connections.inc({ protocol }, change)
      },
      refused: (reason) => refused.inc({ reason }),
      overused: (reason) => overused.inc({ reason }),
      handshakeFailed: (reason) => handshakes.inc({ reason }),
    },
    upstream: upstream.service,
    sharedStore: () => createStoreMetrics(registry),
    setScrapeSources(next) {
      sources = next
    },
    contentType: registry.contentType,
    text: registry.text,
    snapshot: registry.snapshot,
  }
}
