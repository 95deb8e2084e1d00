import { ALWAYS_COUNTED, WINDOW_TYPES, type WindowType } from '../http/admission.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import { nameOfGrant } from '../http/scope.ts'
import { type Clock, systemClock } from '../system/clock.ts'
import { BOUNDS, createMetricRegistry, seriesOf } from './metric-registry.ts'
import { processMetrics } from './process-metrics.ts'
import { createTally, endReasonOf, REASONS, REFUSAL_REASONS } from './tally.ts'
import { createStoreMetrics, createUpstreamMetrics, type DeviceLoad } from './upstream-metrics.ts'

interface ScrapeSources {
  readonly tokens: () => { readonly access: number; readonly refresh: number }
  /** Live tokens that are not in the token file and that a restart would lose; undefined for `tokens.store: memory`. */
  readonly unsaved: () => number | undefined
  readonly windows: (endpoint: WindowType) => number
  readonly upstream: () => DeviceLoad
  /** What clients make the process hold (bytes), and the most that they may. */
  readonly memory: { readonly sums: Readonly<Record<string, number>>; readonly limit: number }
}

export type Metrics = ReturnType<typeof createMetrics>
export type Totals = ReturnType<Metrics['totals']>

export function createMetrics(
  built: { readonly version: string; readonly node: string },
  clock: Clock = systemClock,
) {
  const registry = createMetricRegistry(processMetrics())
  const { counter, gauge, histogram } = registry
  let serverErrors = 0
  let sources: ScrapeSources | undefined

  const requests = counter(
    'requests_total',
    'Requests that have ended, by endpoint type, method and status code.',
    ['endpoint', 'method', 'code'],
  )
  const requestBytes = counter(
    'request_bytes_total',
    'Bytes of request bodies and tunnels read from clients.',
  )()
  const responseBytes = counter(
    'response_bytes_total',
    'Bytes of response bodies and tunnels sent to clients.',
  )()
  const durations = histogram(
    'request_duration_seconds',
    'Time from the request head to the end of the response.',
    ['endpoint'],
  )
  const rateLimited = counter('rate_limited_total', 'Requests refused with 429.', ['endpoint'])
  function openEndpoint(endpoint: WindowType) {
    const series = {
      count: createTally(requests, endpoint),
      durations: durations(endpoint),
      limited: rateLimited(endpoint),
    }
    endpoints.set(endpoint, series)
    return series
  }
  /** `browser` has series from its first request on: without `browser.login` there is none. */
  const endpoints = new Map<WindowType, ReturnType<typeof openEndpoint>>()
  const always = WINDOW_TYPES.filter((type) => ALWAYS_COUNTED[type])
  for (const endpoint of always) openEndpoint(endpoint)
  gauge('rate_windows', 'Rate limit windows held.', ['endpoint'], (windows) => {
    for (const endpoint of endpoints.keys()) windows(endpoint).value = sources?.windows(endpoint) ?? 0
  })
  const named = counter(
    'named_requests_total',
    'Requests with a token of a name of `passwords`, by whether the name may make them.',
    ['name', 'result'],
  )
  const upstream = createUpstreamMetrics(registry, () => sources?.upstream(), clock)
  const refusals = seriesOf(
    counter(
      'refusals_total',
      'Refusals, by reason, of bytes that are no valid request too. With `enforce: false` also those that would have been.',
      ['reason'],
    ),
    REFUSAL_REASONS,
  )
  const ended = counter(
    'requests_ended_total',
    'Admitted requests, streams and WebSockets ended because their grant has ended or a reload admits them no more, by reason.',
    ['reason'],
  )
  seriesOf(ended, ['expired', 'revoked'])
  const fallbacks = counter(
    'rate_fallback_total',
    'Requests counted by this sidecar alone because the shared store did not answer.',
    ['endpoint'],
  )
  seriesOf(fallbacks, always)
  const authFailures = seriesOf(
    counter('auth_failures_total', 'Requests refused with 401, by reason.', ['reason']),
    ['missing', 'malformed', 'unknown', 'expired', 'revoked'],
  )
  const passwordFailures = counter('password_failures_total', 'Password grants with a wrong password.')()
  const slowedLogins = counter(
    'logins_slowed_total',
    'Logins that waited because of wrong passwords before them.',
  )()
  gauge('tokens', 'Live tokens.', ['kind'], (tokens) => {
    for (const kind of ['access', 'refresh'] as const) tokens(kind).value = sources?.tokens()[kind] ?? 0
  })
  gauge(
    'tokens_unsaved',
    'Live tokens that are missing in the token file because writing it failed. A restart would lose them.',
    [],
    (unsaved) => {
      unsaved().value = sources?.unsaved() ?? Number.NaN
    },
  )
  const issued = counter('tokens_issued_total', 'Token responses, by grant type.', ['grant'])
  const revoked = counter('tokens_revoked_total', 'Grants revoked with all tokens, by reason.', ['reason'])
  const evicted = seriesOf(
    counter('tokens_evicted_total', 'Tokens dropped because the store was full.', ['kind']),
    ['access', 'refresh'],
  )
  const storeErrors = counter('store_errors_total', 'Failures of a store.', ['store', 'operation'])
  const reloads = seriesOf(counter('config_reloads_total', 'Configuration reloads, by result.', ['result']), [
    'success',
    'failure',
  ])
  // Without TLS there is no certificate. A sample of 0 would mean 1970, so there is none.
  const certificateFrom = gauge(
    'certificate_not_before_timestamp_seconds',
    'Unix time at which the served certificate becomes valid; of a chain, the last to do so.',
  )
  const certificateUntil = gauge(
    'certificate_expiry_timestamp_seconds',
    'Unix time at which the served certificate expires; of a chain, the first to do so.',
  )
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
  gauge(
    'memory_bytes',
    'What clients make the process hold, as it is charged to them, by what it is.',
    ['of'],
    (bytes) => {
      for (const [of, held] of Object.entries(sources?.memory.sums ?? {})) bytes(of).value = held
    },
  )
  gauge(
    'memory_limit_bytes',
    'The most that clients may make the process hold: `listen.memory`.',
    [],
    (limit) => {
      limit().value = sources?.memory.limit ?? Number.NaN
    },
  )
  const shed = counter(
    'shed_total',
    'What clients were refused, or lost, because they hold much, by stage and by what it is.',
    ['stage', 'what'],
  )
  for (const stage of ['shares', 'grants'])
    for (const what of ['connection', 'stream', 'request']) shed(stage, what)
  gauge('build_info', 'Version of Postern and of Node.', ['version', 'node'])(
    built.version,
    built.node,
  ).value = 1

  seriesOf(connections, ['http/1.1', 'h2'])
  seriesOf(refused, ['max_connections', 'max_connections_per_client', 'memory', 'not_allowed'])
  seriesOf(overused, ['max_resets', 'max_control_frames', 'max_queued_bytes', 'protocol_error'])
  seriesOf(handshakes, ['handshake_timeout', 'client_left', 'plain_http', 'tls_error'])

  /** Counts a refusal that belongs to no exchange record. */
  function countRefusal({ kind }: Refusal): void {
    refusals[REASONS[kind]].value += 1
  }

  return {
    /** Sums since the start. Requests, and the device's response heads, are those of each duration, in the buckets of `BOUNDS`. */
    totals: () => ({
      requests: [...BOUNDS, Number.POSITIVE_INFINITY].map((_, i) =>
        endpoints.values().reduce((sum, { durations }) => sum + (durations.counts[i] ?? 0), 0),
      ),
      device: [...upstream.durations],
      /** In the order of `REFUSAL_REASONS`. */
      refusals: REFUSAL_REASONS.map((reason) => refusals[reason].value),
      /** Ended requests with a status of 500 and above, the device's or Postern's own. */
      serverErrors,
      /** At present. */
      connections: openConnections,
      tunnels: upstream.tunnels.value,
    }),
    /** Counts an exchange that has ended. */
    exchange(exchange: Exchange): void {
      const { head, endpoint, refusal, wouldRefuse, status, duration, scope } = exchange
      const series = endpoints.get(endpoint) ?? openEndpoint(endpoint)
      series.count(head.method, status)
      series.durations.observe(duration / 1000)
      if (status >= 500) serverErrors += 1
      requestBytes.value += exchange.requestBytes
      responseBytes.value += exchange.responseBytes
      if (refusal?.kind === 'insufficient-scope')
        named(nameOfGrant(exchange.grant ?? ''), 'insufficient_scope').value += 1
      else if (scope !== undefined) named(scope.name, 'admitted').value += 1
      if (exchange.endedFor !== undefined) ended(endReasonOf(exchange.endedFor)).value += 1
      const gateRefusal = refusal ?? wouldRefuse
      if (gateRefusal === undefined) return
      countRefusal(gateRefusal)
      const { kind } = gateRefusal
      if (kind === 'rate-limited' || kind === 'wrong-passwords') series.limited.value += 1
      if (gateRefusal.kind === 'unauthorized') authFailures[gateRefusal.cause].value += 1
    },
    refused: countRefusal,
    /** A client was refused something, or lost it, because of the memory that clients hold. */
    shed: (stage: string, what: string): void => shed(stage, what).add(),
    /** The shared store did not answer, so this sidecar alone counted a request. */
    rateFallback: (endpoint: WindowType): void => fallbacks(endpoint).add(),
    passwordFailed: (): void => passwordFailures.add(),
    loginSlowed: (): void => slowedLogins.add(),
    /** @param responses 0 creates the series of a grant type before its first use */
    tokensIssued(grant: string, responses = 1): void {
      issued(grant).value += responses
    },
    tokensRevoked: (reason: string, grants: number): void => revoked(reason).add(grants),
    tokensEvicted: (kind: 'access' | 'refresh', count: number): void => evicted[kind].add(count),
    /** Gives each operation of a store a series of 0: `increase()` does not see the first event of a new series. */
    storeOpened(store: string, operations: readonly string[]): void {
      for (const operation of operations) storeErrors(store, operation)
    },
    storeFailed: (store: string, operation: string): void => storeErrors(store, operation).add(),
    configReloaded: (result: 'success' | 'failure'): void => reloads[result].add(),
    /** The validity of the served certificate, in ms since the Unix epoch. */
    certificateServed(from: number, until: number): void {
      certificateFrom().value = from / 1000
      certificateUntil().value = until / 1000
    },
    /** Events of the public listener's connections. A reason is the name of the configuration key of the cap. */
    connections: {
      connection(protocol: string, change: 1 | -1): void {
        openConnections += change
        connections(protocol).value += change
      },
      refused: (reason: string): void => refused(reason).add(),
      overused: (reason: string): void => overused(reason).add(),
      handshakeFailed: (reason: string): void => handshakes(reason).add(),
    },
    /** @param route the path of a route's service; undefined for the device's main service */
    upstream: upstream.service,
    /** Creates the metrics of a shared store. Call it at most once. */
    sharedStore: () => createStoreMetrics(registry),
    setScrapeSources(next: ScrapeSources): void {
      sources = next
    },
    contentType: registry.contentType,
    text: registry.text,
  }
}
