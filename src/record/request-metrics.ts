import { ALWAYS_COUNTED, WINDOW_TYPES, type WindowType } from '../http/admission.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import { nameOfGrant } from '../http/scope.ts'
import { BOUNDS, type MetricRegistry, seriesOf } from './metric-registry.ts'
import { createTally, endReasonOf, REASONS, REFUSAL_REASONS } from './tally.ts'

/**
 * The metrics of exchanges that have ended, and of refusals at the gate.
 *
 * @param windowsHeld the number of windows of an endpoint type; called on each scrape
 */
export function createRequestMetrics(
  { counter, readGauges, histogram }: MetricRegistry,
  windowsHeld: (endpoint: WindowType) => number,
) {
  let serverErrors = 0
  /** The series of each endpoint type. `browser` gets its series with its first request, because without `browser.login` it has none. */
  const endpoints = new Map<WindowType, ReturnType<typeof openEndpoint>>()
  const always = WINDOW_TYPES.filter((type) => ALWAYS_COUNTED[type])

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
  for (const endpoint of always) openEndpoint(endpoint)
  readGauges('rate_windows', 'Rate limit windows held.', 'endpoint', () =>
    Object.fromEntries(endpoints.keys().map((endpoint) => [endpoint, windowsHeld(endpoint)])),
  )
  const fallbacks = counter(
    'rate_fallback_total',
    'Requests counted by this sidecar alone because the shared store did not answer.',
    ['endpoint'],
  )
  seriesOf(fallbacks, always)
  const named = counter(
    'named_requests_total',
    'Requests with a token of a name of `passwords`, by whether the name may make them and has requests left (`per: name`). `would_refuse`: its `allow` is on trial.',
    ['name', 'result'],
  )
  const refusals = seriesOf(
    counter(
      'refusals_total',
      'Refusals, by reason, of bytes that are no valid request too. With `enforce: false` also those that would have been.',
      ['reason'],
    ),
    REFUSAL_REASONS,
  )
  const authFailures = seriesOf(
    counter('auth_failures_total', 'Requests refused with 401, by reason.', ['reason']),
    ['missing', 'malformed', 'unknown', 'expired', 'revoked'],
  )
  const ended = counter(
    'requests_ended_total',
    'Admitted requests, streams and WebSockets ended because their grant has ended, a reload admits them no more, their body passed `upstream.max_body`, or they were idle for `upstream.tunnel_idle_timeout`, by reason.',
    ['reason'],
  )
  seriesOf(ended, ['expired', 'revoked', 'body_too_large', 'idle'])

  function openEndpoint(endpoint: WindowType) {
    const series = {
      count: createTally(requests, endpoint),
      durations: durations(endpoint),
      limited: rateLimited(endpoint),
    }
    endpoints.set(endpoint, series)
    return series
  }

  function countRefusal({ kind }: Refusal): void {
    refusals[REASONS[kind]].value += 1
  }

  /** Counts a request that the window of its name refused. Without a valid token, the window is that of the client: not counted here. */
  function countLimited({ identity }: Exchange): void {
    const name = identity?.kind === 'valid' ? nameOfGrant(identity.grant) : ''
    if (name !== '') named(name, 'rate_limited').value += 1
  }

  return {
    /** Counts an exchange that has ended. */
    exchange(exchange: Exchange): void {
      const { head, endpoint, refusal, wouldRefuse, status, duration, scope } = exchange
      const series = endpoints.get(endpoint) ?? openEndpoint(endpoint)
      series.count(head.method, status)
      series.durations.observe(duration / 1000)
      if (status >= 500) serverErrors += 1
      requestBytes.value += exchange.requestBytes
      responseBytes.value += exchange.responseBytes
      const isTried = wouldRefuse?.kind === 'insufficient-scope'
      if (refusal?.kind === 'insufficient-scope')
        named(nameOfGrant(exchange.grant ?? ''), 'insufficient_scope').value += 1
      else if (isTried) named(nameOfGrant(exchange.grant ?? ''), 'would_refuse').value += 1
      else if (scope !== undefined) named(scope.name, 'admitted').value += 1
      else if (refusal?.kind === 'rate-limited' && exchange.per === 'name') countLimited(exchange)
      if (exchange.endedFor !== undefined || exchange.idle) ended(endReasonOf(exchange)).value += 1
      // An `allow` on trial refuses nothing: only its name counts what it would refuse.
      const gateRefusal = refusal ?? (isTried ? undefined : wouldRefuse)
      if (gateRefusal === undefined) return
      countRefusal(gateRefusal)
      const { kind } = gateRefusal
      if (kind === 'rate-limited' || kind === 'wrong-passwords') series.limited.value += 1
      if (gateRefusal.kind === 'unauthorized') authFailures[gateRefusal.cause].value += 1
    },
    /** The number of requests since the start that the `allow` of a name on trial would have refused, or stripped of a field. */
    wouldRefuse: (name: string): number => named(name, 'would_refuse').value,
    /** Counts a refusal without an exchange. */
    refused: countRefusal,
    /** The shared store did not answer, so this sidecar alone counted a request. */
    rateFallback: (endpoint: WindowType): void => fallbacks(endpoint).add(),
    /** Sums since the start. */
    totals: () => ({
      /** By duration, in the buckets of `BOUNDS`. */
      requests: [...BOUNDS, Number.POSITIVE_INFINITY].map((_, i) =>
        endpoints.values().reduce((sum, { durations }) => sum + (durations.counts[i] ?? 0), 0),
      ),
      /** In the order of `REFUSAL_REASONS`. */
      refusals: REFUSAL_REASONS.map((reason) => refusals[reason].value),
      /** Ended requests with a status of 500 and above, the device's or Postern's own. */
      serverErrors,
    }),
  }
}
