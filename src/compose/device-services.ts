import type { PlacesCondition } from '../admin/control-socket.ts'
import { formatUpstreamUrl } from '../config/address.ts'
import type { Config } from '../config/schema.ts'
import type { ServiceConfig } from '../config/upstream-fields.ts'
import { createBreaker, type HealthCheck, startHealthCheck } from '../device/breaker.ts'
import { type Connections, createConnections } from '../device/connections.ts'
import { watchTrouble } from '../device/diagnosis.ts'
import type { UploadBuffering } from '../forward/buffered-body.ts'
import { openCeilings } from '../forward/ceilings.ts'
import { downloadPace } from '../forward/pace.ts'
import type { RequestFieldSettings } from '../forward/request-fields.ts'
import { createRoutedUpstream } from '../forward/routes.ts'
import {
  createTargets,
  placesOf,
  readRequestFields,
  type Targets,
  uploadBuffering,
  upstreamDeadlines,
} from '../forward/settings.ts'
import { createSharing } from '../forward/sharing.ts'
import { createStreams } from '../forward/streams.ts'
import { createUpstream, type Upstream } from '../forward/upstream.ts'
import type { ServiceCondition } from '../overview/model.ts'
import { watchService } from '../overview/overview.ts'
import type { Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import type { DeviceLoad } from '../record/upstream-metrics.ts'
import { openSignIn, signInLog } from '../sign-in/settings.ts'
import type { SignIn } from '../sign-in/sign-in.ts'
import type { BoundedQueue } from '../system/bounded-queue.ts'
import type { Clock } from '../system/clock.ts'
import { connectionsLog, unkeptLog } from './device-log.ts'
import { loadOf, openPlaces, type Shared } from './places.ts'

export interface DeviceServices {
  readonly main: DeviceService
  readonly upstream: Upstream
  load(): DeviceLoad
  readonly bounds: { readonly queueSize: number; readonly maxTunnels: number }
  /** The main service first, here and below. */
  places(): readonly PlacesCondition[]
  conditions(): readonly ServiceCondition[]
  /** Why the sidecar is not ready, according to the health checks; empty if it is. */
  unreadyReasons(): readonly string[]
  applySettings(settings: ServiceSettings): void
  /** Ends the sessions of `upstream.auth` at the device. */
  signOut(): Promise<void>
  readonly renewTls: Targets['renew']
  close(): Promise<void>
}

interface DeviceService {
  readonly upstream: Upstream
  readonly signIn: SignIn | undefined
  readonly queue: BoundedQueue
  readonly places: () => PlacesCondition
  readonly buffering: Pick<UploadBuffering, 'queue'> | undefined
  readonly connections: Connections
  readonly health: HealthCheck | undefined
  condition(): ServiceCondition
  /** @param request undefined: the request fields stay */
  applySettings(settings: Partial<ServiceSettings>): void
  close(): Promise<void>
}

interface ServiceSettings {
  readonly request: RequestFieldSettings
  /** Names of the device's response fields that the rate-limit fields replace, in lower case. */
  readonly replaced: readonly string[]
}

export interface DeviceServicesDependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly settings: ServiceSettings
  /** How long a client may pause within its request body (ms). */
  readonly uploadTimeout: () => number
  readonly onBug: (error: unknown) => void
}

/** Creates the configured services. Rejects with `SetupError` if a file that the configuration names cannot be used. */
export async function openDeviceServices(
  config: Config,
  deps: DeviceServicesDependencies,
): Promise<DeviceServices> {
  const targets = createTargets()
  const configs = [config.upstream, ...Object.values(config.upstream.routes)]
  const sharing = createSharing(configs)
  const ceilings = openCeilings(config.stateDir, deps.clock, unkeptLog(deps.log))
  const parts = { targets, ceilings, sharing }
  const main = await openDeviceService(undefined, config.upstream, config, parts, deps)
  const routes = new Map<string, DeviceService>()
  const closeAll = async (): Promise<void> => {
    await Promise.all([main, ...routes.values()].map((service) => service.close()))
  }
  try {
    for (const [path, route] of Object.entries(config.upstream.routes)) {
      const settings = { ...deps.settings, request: await readRequestFields(route, routeKey(path)) }
      routes.set(path, await openDeviceService(path, route, config, parts, { ...deps, settings }))
    }
  } catch (error) {
    await closeAll()
    throw error
  }
  const all = [main, ...routes.values()]
  const sum = (of: (service: ServiceConfig) => number): number =>
    configs.reduce((total, service) => total + of(service), 0)
  const upstreams = new Map([...routes].map(([path, { upstream }]) => [path, upstream]))
  return {
    main,
    upstream: sharing.watch(createRoutedUpstream(main.upstream, upstreams)),
    load: () => ({
      ...loadOf(all),
      tolerant: all.some(({ connections }) => connections.tolerant),
    }),
    bounds: {
      // Uploads that wait to be buffered have a queue of their own.
      queueSize: sum(({ queue, bufferUploads }) => queue.size * (bufferUploads === 'off' ? 1 : 2)),
      maxTunnels: sum(({ maxTunnels }) => maxTunnels),
    },
    places: () => all.map(({ places }) => places()),
    conditions: () => all.map((service) => service.condition()),
    unreadyReasons: () =>
      all.some(({ health }) => health?.up === false) ? ['the device does not respond'] : [],
    applySettings({ request, replaced }) {
      main.applySettings({ request, replaced })
      for (const service of routes.values()) service.applySettings({ replaced })
    },
    async signOut() {
      await Promise.all(all.map(({ signIn }) => signIn?.signOut()))
    },
    renewTls: targets.renew,
    close: closeAll,
  }
}

function routeKey(path: string): string {
  return `upstream.routes.${path}`
}

/** @param route the path of a service of `upstream.routes`; undefined for the main service */
async function openDeviceService(
  route: string | undefined,
  service: ServiceConfig,
  { listen }: Config,
  { targets, ceilings, sharing }: Shared,
  { clock, settings, uploadTimeout, onBug, ...deps }: DeviceServicesDependencies,
): Promise<DeviceService> {
  const log = route === undefined ? deps.log : deps.log.child({ route })
  const metrics = deps.metrics.upstream(route)
  const key = route === undefined ? 'upstream' : routeKey(route)
  const target = await targets.open(service, key)
  const breaker = createBreaker(clock)
  const trouble = watchTrouble(target, {
    ...{ key, clock, breaker },
    onFound: ({ reason, remedy }) =>
      log.error({ reason, remedy }, 'cannot connect to the device: a fault in its TLS or in upstream.url'),
    onBug,
  })
  const events: typeof metrics = {
    ...metrics,
    failed(failure) {
      trouble.failed(failure)
      metrics.failed(failure)
    },
  }
  const places = openPlaces(service, route, { ceilings, clock, log, metrics })
  const { queue, bounds, room } = places
  const connections = createConnections(target, upstreamDeadlines(service), clock, connectionsLog(log, room))
  const fieldsOf = (request: RequestFieldSettings, replaced: readonly string[]) => {
    const { host, rewrite } = request
    return { request, response: { origin: target.origin, host, rewrite, replaced } }
  }
  const fields = fieldsOf(settings.request, settings.replaced)
  const signIn = await openSignIn(service.auth, {
    key: `${key}.auth`,
    connections,
    origin: target.origin,
    request: () => fields.request,
    clock,
    events: signInLog(log),
  })
  const paced = placesOf(service, queue)
  const buffering = uploadBuffering(service, key, bounds, clock, log)
  const queued = (): number => Math.max(queue.waiting, buffering?.queue.waiting ?? 0)
  const condition = watchService(
    { route: route ?? null, url: formatUpstreamUrl(service.url), checked: service.health.path !== null },
    {
      metrics,
      breaker,
      connections,
      queue: () => ({ queued: queued(), size: service.queue.size, maxInFlight: queue.places }),
      clock,
    },
  )
  const { path, interval } = service.health
  const checked = { onResult: events.up, onFault: trouble.failed, onBug }
  const health =
    path === null ? undefined : startHealthCheck({ path, interval }, connections, breaker, checked)
  const streams = createStreams(service, queue, connections)
  const upstream = createUpstream({
    route: route ?? '',
    connections,
    paces: { upload: paced.pace, download: downloadPace(listen.idleTimeout, service.queue.timeout, queue) },
    fields,
    idleTimeout: service.idleTimeout,
    ...paced,
    uploadTimeout,
    buffering: buffering && { ...buffering, uploadTimeout },
    breaker,
    signIn,
    clock,
    maxTunnels: service.maxTunnels,
    learner: places.learner,
    get streams() {
      return queue.places > 1 ? streams : undefined
    },
    events,
  })
  const shared = { clock, fields, route: route ?? '', onShared: metrics.shared }
  return {
    upstream: sharing.of(upstream, service, shared),
    signIn,
    queue,
    places: places.condition,
    buffering,
    connections,
    health,
    condition,
    applySettings({ request = fields.request, replaced = fields.response.replaced }) {
      Object.assign(fields, fieldsOf(request, replaced))
    },
    async close() {
      health?.close()
      trouble.close()
      await connections.close()
    },
  }
}
