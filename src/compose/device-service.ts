import type { PlacesCondition, RouteQuirk } from '../admin/control-socket.ts'
import { formatUpstreamUrl } from '../config/address.ts'
import type { NamedService, ServiceConfig } from '../config/upstream-fields.ts'
import { type Breaker, createBreaker, startHealthCheck } from '../device/breaker.ts'
import { type Connections, createConnections } from '../device/connections.ts'
import { watchTrouble } from '../device/diagnosis.ts'
import type { FleetPlaces } from '../fleet/places.ts'
import type { UploadBuffering } from '../forward/buffered-body.ts'
import { type Ceilings, roomUnder } from '../forward/ceilings.ts'
import { downloadPace } from '../forward/pace.ts'
import type { RequestFieldSettings } from '../forward/request-fields.ts'
import type { RoundTripService } from '../forward/round-trip-service.ts'
import {
  type DeviceBounds,
  placesOf,
  type Targets,
  uploadBuffering,
  upstreamDeadlines,
} from '../forward/settings.ts'
import type { Sharing } from '../forward/sharing.ts'
import { createStreams } from '../forward/streams.ts'
import { createUpstream, type Upstream } from '../forward/upstream.ts'
import type { ServiceCondition } from '../overview/model.ts'
import { createDeviceChanges } from '../record/device-changes.ts'
import type { Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import type { DeviceLoad, UpstreamMetrics } from '../record/upstream-metrics.ts'
import { openSignIn, signInLog } from '../sign-in/settings.ts'
import type { SignIn } from '../sign-in/sign-in.ts'
import type { Clock } from '../system/clock.ts'
import { Quirks } from './quirks.ts'
import { ServicePlaces } from './service-places.ts'
import type { Settings } from './settings.ts'

export type ServiceSettings = Pick<Settings, 'config' | 'requests' | 'replaced'>

export interface ServiceDependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly settings: ServiceSettings
  /** How long a client may pause within its request body (ms). */
  readonly uploadTimeout: number
  readonly bounds: DeviceBounds
  readonly onBug: (error: unknown) => void
}

/** What all services of the device share. */
export interface Shared {
  /** The tokens are shared with other sidecars, and what breaks the device, too. */
  readonly inFleet: boolean
  readonly targets: Targets
  readonly ceilings: Ceilings
  readonly sharing: Sharing
  /** The client is cut off if it reads nothing of a response for so long (ms). */
  readonly downloadTimeout: number
}

/** Opens a service of the device. Rejects with `SetupError` if a file that its configuration names cannot be used. */
export async function openDeviceService(
  { path, service }: NamedService,
  { inFleet, targets, ceilings, sharing, downloadTimeout }: Shared,
  { clock, settings, uploadTimeout, bounds, onBug, ...deps }: ServiceDependencies,
): Promise<DeviceService> {
  const route = path[2]
  const key = path.join('.')
  const log = route === undefined ? deps.log : deps.log.child({ route })
  const metrics = deps.metrics.upstream(route)
  const target = await targets.open(service, key)
  const breaker = createBreaker(clock)
  const changes = createDeviceChanges(log, formatUpstreamUrl(service.url), clock)
  metrics.watch(changes.changed)
  const trouble = watchTrouble(target, {
    ...{ key, clock, breaker, onBug },
    patience: service.connectTimeout,
    onFound: ({ reason, remedy }) =>
      log.error({ reason, remedy }, 'cannot connect to the device: a fault in its TLS or in upstream.url'),
  })
  const events: UpstreamMetrics = {
    ...metrics,
    failed(failure) {
      trouble.failed(failure)
      metrics.failed(failure)
    },
  }
  const places = new ServicePlaces(service, { route, inFleet, ceilings, metrics, clock, log })
  const { queue, learner, capacity } = places
  const quirks = new Quirks(clock, log)
  const connections = createConnections(target, upstreamDeadlines(service), clock, {
    capacity,
    onQuirk: (kind, malformed) => quirks.found(kind, malformed),
  })
  const fields = fieldsOf(target.origin, requestOf(settings, route), settings.replaced)
  const signIn = await openSignIn(service.auth, {
    ...{ key: `${key}.auth`, connections, origin: target.origin, clock },
    request: () => fields.request,
    events: signInLog(log),
  })
  const { streamAfter } = service
  const ownMaxBody = route === undefined ? undefined : settings.config.upstream.routes[route]?.maxBody
  const buffering = uploadBuffering(service, bounds, key, clock, log)
  const health = startHealthCheck(service.health, connections, breaker, {
    ...{ onResult: events.up, onFault: trouble.failed, onBug },
  })
  const upstream = createUpstream({
    ...placesOf(service, bounds, queue, clock),
    ...{ route: route ?? '', connections, fields, learner, breaker, signIn, events, clock, uploadTimeout },
    downloadPace: downloadPace(clock, downloadTimeout, service.queue.timeout, queue),
    streams: createStreams(clock, service, streamAfter, queue, connections),
    streamAfter,
    maxBody: () => longestBody({ maxBody: ownMaxBody ?? settings.config.upstream.maxBody }),
    buffering,
    tunnelIdleTimeout: service.tunnelIdleTimeout,
    maxTunnels: service.maxTunnels,
  })
  const { shared: onShared } = metrics
  return new DeviceService({
    ...{ route, config: service, origin: target.origin, metrics, places, quirks, connections },
    ...{ fields, signIn, buffering, breaker, health, trouble, changes },
    upstream: sharing.of(upstream, service, { clock, fields, route: route ?? '', streamAfter, onShared }),
  })
}

/** The longest body that the service gets (bytes); `Infinity`: every body. */
function longestBody({ maxBody }: Pick<ServiceConfig, 'maxBody'>): number {
  return maxBody === 'off' ? Number.POSITIVE_INFINITY : maxBody
}

interface Parts {
  /** The path of a service of `upstream.routes`; undefined for the main service. */
  readonly route: string | undefined
  readonly config: ServiceConfig
  /** Scheme, host and port of the device. */
  readonly origin: string
  readonly metrics: UpstreamMetrics
  readonly places: ServicePlaces
  readonly quirks: Quirks
  readonly connections: Connections
  /** A reload replaces what it holds. */
  readonly fields: RoundTripService['fields']
  readonly signIn: SignIn | undefined
  readonly buffering: Pick<UploadBuffering, 'queue'> | undefined
  readonly breaker: Breaker
  readonly health: ReturnType<typeof startHealthCheck>
  readonly trouble: { close(): void }
  readonly changes: { close(): void }
  readonly upstream: Upstream
}

/** A service of the device: the main one, or one of `upstream.routes`. */
export class DeviceService {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The path of a service of `upstream.routes`; undefined for the main service. */
  get route(): string | undefined {
    return this.#parts.route
  }

  get upstream(): Upstream {
    return this.#parts.upstream
  }

  /** The sidecar's own account at the service, if it has one. */
  get signIn(): SignIn | undefined {
    return this.#parts.signIn
  }

  /** False if the last health check says that the service does not answer. */
  get isReady(): boolean {
    return this.#parts.health?.up !== false
  }

  get load(): DeviceLoad {
    const { places, buffering, connections } = this.#parts
    const { queue } = places
    return {
      inFlight: queue.inside,
      queued: queue.waiting + (buffering?.queue.waiting ?? 0),
      limit: queue.places,
      tolerant: connections.tolerant,
    }
  }

  /** The most requests that wait, and the most tunnels. Uploads that wait to be buffered have a queue of their own. */
  get bounds(): { readonly queueSize: number; readonly maxTunnels: number } {
    const { config, buffering } = this.#parts
    return {
      queueSize: config.queue.size * (buffering === undefined ? 1 : 2),
      maxTunnels: config.maxTunnels,
    }
  }

  /** What the live page shows. */
  condition(): ServiceCondition {
    const { route, config, metrics, places, quirks, connections, buffering, breaker } = this.#parts
    const { queue, learner } = places
    const limit = learner && roomUnder(learner.ceiling)
    return {
      ...metrics.condition(),
      route: route ?? null,
      url: formatUpstreamUrl(config.url),
      checked: config.health.path !== null,
      breaker: breaker.open ? 'open' : 'closed',
      tolerant: connections.tolerant,
      quirks: quirks.all(),
      queue: {
        queued: Math.max(queue.waiting, buffering?.queue.waiting ?? 0),
        size: config.queue.size,
        maxInFlight: queue.places,
      },
      ceiling: limit === undefined ? null : { kind: learner?.ceiling.wall?.kind ?? 'guess', limit },
    }
  }

  /** The places, as `postern status` shows them. */
  places(): PlacesCondition {
    const { route, places } = this.#parts
    return { route: route ?? null, ...places.condition() }
  }

  /** The quirks that its responses have shown. */
  quirks(): readonly RouteQuirk[] {
    const { route, quirks } = this.#parts
    return quirks.all().map((each) => ({ route: route ?? null, ...each }))
  }

  /** Shares what breaks the device with the other sidecars. Resolves when the store has answered, or has not. */
  join(fleet: FleetPlaces): Promise<void> {
    return this.#parts.places.join(fleet)
  }

  /** Forgets what the device can take at once, because the operator says so. Returns whether anything was known. */
  forgetCeiling(): boolean {
    return this.#parts.places.forgetCeiling()
  }

  /** The wall clock was set. */
  retime(): void {
    this.#parts.places.retime()
  }

  applySettings(next: ServiceSettings): void {
    const { route, origin, fields } = this.#parts
    Object.assign(fields, fieldsOf(origin, requestOf(next, route), next.replaced))
  }

  /** Stops what runs by itself, and closes the connections. */
  async close(): Promise<void> {
    const { health, trouble, changes, connections } = this.#parts
    health?.close()
    trouble.close()
    changes.close()
    await connections.close()
  }
}

/** Throws for a route that the configuration of the start does not have. */
function requestOf({ requests }: Pick<ServiceSettings, 'requests'>, route = ''): RequestFieldSettings {
  const found = requests.get(route)
  if (found === undefined) throw new Error(`no service at ${route}`)
  return found
}

/** How header fields change on the way to the device at `origin`, and back. */
function fieldsOf(
  origin: string,
  request: RequestFieldSettings,
  replaced: readonly string[],
): RoundTripService['fields'] {
  const { host, rewrite, response } = request
  return { request, response: { origin, host, rewrite, replaced, ...response } }
}
