import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Endpoint } from '../http/admission.ts'
import type { ExchangeRecord } from '../http/exchange.ts'
import { isUnreachable, type UpstreamFailure } from '../http/refusal.ts'
import { codeLabel, methodLabel } from './labels.ts'
import { createTally } from './tally.ts'

/** What is read anew for every scrape. */
export interface Readings {
  readonly tokens: () => { readonly access: number; readonly refresh: number }
  readonly windows: () => Readonly<Record<Endpoint, number>>
  readonly upstream: () => UpstreamReadings
}

/** How busy the device is, with all its services. */
export interface UpstreamReadings {
  readonly inFlight: number
  readonly queued: number
  readonly tolerant: boolean
}

/** What happens at one service of the device. */
export interface UpstreamMetrics {
  /** Milliseconds to the head of its response. */
  answered(duration: number): void
  failed(reason: UpstreamFailure): void
  up(up: boolean): void
  tunnel(change: 1 | -1): void
}

export interface Metrics {
  exchange(record: ExchangeRecord): void
  passwordFailed(): void
  tokensIssued(grant: 'password' | 'refresh_token'): void
  tokensRevoked(reason: string, grants: number): void
  tokensEvicted(kind: 'access' | 'refresh', count: number): void
  storeFailed(store: string, operation: string): void
  configReloaded(result: 'success' | 'failure'): void
  /** What the public listener tells of its connections; the reasons are the names of the keys that hold them. */
  readonly connections: {
    connection(protocol: string, change: 1 | -1): void
    refused(reason: string): void
    overused(reason: string): void
  }
  /** @param route the path of a further service; undefined for the device's main one */
  upstream(route: string | undefined): UpstreamMetrics
  observe(readings: Readings): void
  readonly contentType: string
  /** The exposition text. */
  text(): Promise<string>
}

/** Around what a LAN device takes, from a cached answer to the response deadline (seconds). */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** prom-client's own whose names promise a counter that they are not; `promtool check metrics` objects to them. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

export function createMetrics({
  version,
  node,
}: {
  readonly version: string
  readonly node: string
}): Metrics {
  const register = new Registry()
  collectDefaultMetrics({ register })
  for (const name of MISNAMED) register.removeSingleMetric(name)
  const registers = [register]

  function counter<L extends string>(name: string, help: string, labelNames: readonly L[] = []): Counter<L> {
    return new Counter({ name: `postern_${name}`, help, labelNames, registers })
  }
  function gauge<L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[] = [],
    collect?: (gauge: Gauge<L>) => void,
  ): Gauge<L> {
    return new Gauge({
      name: `postern_${name}`,
      help,
      labelNames,
      registers,
      ...(collect === undefined
        ? {}
        : {
            collect() {
              collect(this)
            },
          }),
    })
  }

  const requestTally = createTally<readonly [string, string, string]>()
  const bytes = { request: 0, response: 0 }
  let readings: Readings | undefined

  new Counter({
    name: 'postern_requests_total',
    help: 'Requests that were answered or broke off, by endpoint type, method and status code.',
    labelNames: ['endpoint', 'method', 'code'],
    registers,
    collect() {
      requestTally.drain((labels, amount) => this.labels(...labels).inc(amount))
    },
  })
  const requestBytes = counter(
    'request_bytes_total',
    'Bytes of request bodies and tunnels read from clients.',
  )
  const responseBytes = counter(
    'response_bytes_total',
    'Bytes of response bodies and tunnels sent to clients.',
  )
  const requestDuration = new Histogram({
    name: 'postern_request_duration_seconds',
    help: 'Time from the request head to the end of the response.',
    labelNames: ['endpoint'],
    buckets: BUCKETS,
    registers,
  })
  const durations = { api: requestDuration.labels('api'), oauth: requestDuration.labels('oauth') }
  const upstreamDuration = new Histogram({
    name: 'postern_upstream_duration_seconds',
    help: "Time from sending a request to the device to the head of the device's response.",
    buckets: BUCKETS,
    registers,
  })
  const upstreamErrors = counter('upstream_errors_total', 'Requests that the device failed, by reason.', [
    'reason',
  ])
  const upstreamUp = gauge('upstream_up', 'Whether the device answered the last request or health check.')
  // Nobody has asked yet: no sample, rather than one that raises an alarm.
  upstreamUp.remove()
  const routeUp = gauge('route_up', 'Whether a service of upstream.routes answered last, by its path.', [
    'route',
  ])
  gauge('upstream_in_flight', 'Requests at the device now.', [], (g) =>
    g.set(readings?.upstream().inFlight ?? 0),
  )
  gauge('upstream_queued', 'Requests waiting for a place at the device.', [], (g) =>
    g.set(readings?.upstream().queued ?? 0),
  )
  gauge('upstream_tolerant', 'Whether the device is read tolerantly, on a connection per request.', [], (g) =>
    g.set(readings?.upstream().tolerant ? 1 : 0),
  )
  const rateLimited = counter('rate_limited_total', 'Requests refused with 429.', ['endpoint'])
  gauge('rate_windows', 'Rate limit windows held.', ['endpoint'], (g) => {
    for (const endpoint of ['api', 'oauth'] as const) g.set({ endpoint }, readings?.windows()[endpoint] ?? 0)
  })
  const authFailures = counter('auth_failures_total', 'Requests refused with 401, by reason.', ['reason'])
  const passwordFailures = counter('password_failures_total', 'Password grants with a wrong password.')
  gauge('tokens', 'Live tokens.', ['kind'], (g) => {
    for (const kind of ['access', 'refresh'] as const) g.set({ kind }, readings?.tokens()[kind] ?? 0)
  })
  const issued = counter('tokens_issued_total', 'Token responses, by grant type.', ['grant'])
  const revoked = counter('tokens_revoked_total', 'Grants revoked with all their tokens, by reason.', [
    'reason',
  ])
  const evicted = counter('tokens_evicted_total', 'Tokens dropped because the store was full.', ['kind'])
  const storeErrors = counter('store_errors_total', 'Failures of a store.', ['store', 'operation'])
  const reloads = counter('config_reloads_total', 'Configuration reloads, by result.', ['result'])
  const connections = gauge('connections', 'Open client connections.', ['protocol'])
  const refused = counter(
    'connections_refused_total',
    'Client connections closed at once, by the cap they met.',
    ['reason'],
  )
  const overused = counter(
    'connections_cut_total',
    'Broken off for what a client overdid, by the cap it met.',
    ['reason'],
  )
  const tunnels = gauge('tunnels', 'Open WebSocket tunnels.')
  gauge('build_info', 'Version of Postern and of Node.', ['version', 'node']).set({ version, node }, 1)

  for (const reason of ['missing', 'malformed', 'unknown', 'expired', 'revoked'])
    authFailures.inc({ reason }, 0)
  for (const endpoint of ['api', 'oauth']) rateLimited.inc({ endpoint }, 0)
  for (const grant of ['password', 'refresh_token']) issued.inc({ grant }, 0)
  for (const result of ['success', 'failure']) reloads.inc({ result }, 0)
  for (const kind of ['access', 'refresh']) evicted.inc({ kind }, 0)
  for (const reason of ['max_connections', 'max_connections_per_client']) refused.inc({ reason }, 0)
  for (const reason of ['max_resets', 'max_control_frames', 'max_queued_bytes']) overused.inc({ reason }, 0)
  for (const protocol of ['http/1.1', 'h2']) connections.set({ protocol }, 0)

  return {
    exchange({ head, endpoint, refusal, wouldRefuse, outcome, duration }) {
      const verdict = refusal ?? wouldRefuse
      requestTally.add([endpoint, methodLabel(head.method), codeLabel(outcome.status)])
      durations[endpoint].observe(duration / 1000)
      bytes.request += outcome.requestBytes
      bytes.response += outcome.responseBytes
      if (verdict?.kind === 'rate-limited') rateLimited.inc({ endpoint })
      if (verdict?.kind === 'unauthorized') authFailures.inc({ reason: verdict.cause })
    },
    passwordFailed: () => passwordFailures.inc(),
    tokensIssued: (grant) => issued.inc({ grant }),
    tokensRevoked: (reason, grants) => revoked.inc({ reason }, grants),
    tokensEvicted: (kind, count) => evicted.inc({ kind }, count),
    storeFailed: (store, operation) => storeErrors.inc({ store, operation }),
    configReloaded: (result) => reloads.inc({ result }),
    connections: {
      connection: (protocol, change) => connections.inc({ protocol }, change),
      refused: (reason) => refused.inc({ reason }),
      overused: (reason) => overused.inc({ reason }),
    },
    upstream(route) {
      const set = (up: 0 | 1): void => (route === undefined ? upstreamUp.set(up) : routeUp.set({ route }, up))
      return {
        answered(duration) {
          upstreamDuration.observe(duration / 1000)
          set(1)
        },
        failed(reason) {
          upstreamErrors.inc({ reason })
          if (isUnreachable(reason)) set(0)
        },
        up: (up) => set(up ? 1 : 0),
        tunnel: (change) => tunnels.inc(change),
      }
    },
    observe(next) {
      readings = next
    },
    contentType: register.contentType,
    text() {
      requestBytes.inc(bytes.request)
      responseBytes.inc(bytes.response)
      bytes.request = 0
      bytes.response = 0
      return register.metrics()
    },
  }
}
