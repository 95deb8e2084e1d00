import { isDeepStrictEqual } from 'node:util'
import type { PlacesUse } from '../admin/control-socket.ts'
import { formatUpstreamUrl, isSameAddress } from '../config/address.ts'
import { besidePlaces, type NamedService, type ServiceConfig } from '../config/upstream-fields.ts'
import { type Breaker, createBreaker, createHealthCheck } from '../device/breaker.ts'
import { type Connections, createConnections } from '../device/connections.ts'
import { watchTrouble } from '../device/diagnosis.ts'
import type { UpstreamTarget } from '../device/target.ts'
import type { UploadBuffering } from '../forward/buffered-body.ts'
import { roomUnder } from '../forward/ceiling.ts'
import type { Ceilings } from '../forward/ceilings-file.ts'
import { createFinishingUploads, type LiveRequests } from '../forward/finishing-uploads.ts'
import { downloadPace } from '../forward/pace.ts'
import type { RequestFieldSettings } from '../forward/request-fields.ts'
import type { RoundTripService } from '../forward/round-trip-service.ts'
import {
  type DeviceBounds,
  placesOf,
  uploadBuffering,
  upstreamDeadlines,
  upstreamTarget,
} from '../forward/service-settings.ts'
import type { Sharing } from '../forward/sharing.ts'
import { createStreams, type OpenStreams } from '../forward/streams.ts'
import { createUpstream, type Upstream } from '../forward/upstream.ts'
import type { ServiceCondition } from '../overview/model.ts'
import { createDeviceChanges } from '../record/device-changes.ts'
import type { Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import type { DeviceLoad, UpstreamMetrics } from '../record/upstream-metrics.ts'
import { type OpenedSignIn, openSignIn, signInLog } from '../sign-in/open-sign-in.ts'
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
  /** The requests in flight, which end with their login. */
  readonly live: LiveRequests
  /** How long a client may pause within its request body (ms). */
  readonly uploadTimeout: number
  readonly bounds: DeviceBounds
  readonly onBug: (error: unknown) => void
}

/** The facts and parts that all services of the device share. */
interface Shared {
  /** The sidecars of a fleet share tokens, and the wall of each service. */
  readonly inFleet: boolean
  readonly ceilings: Ceilings
  readonly sharing: Sharing
  /** How long (ms) a client may read nothing of a response before it is cut off. */
  readonly downloadTimeout: number
  /** The other services that will be in effect. A service shares the places of one with its address: these are the places of the device. */
  readonly siblings: readonly DeviceService[]
  /** Services that may still have requests at the device when those to come are in effect. New places count those at their address. */
  readonly leaving: readonly DeviceService[]
}

/** The parts of one service of the device: the main one, or one of `upstream.routes`. */
export interface DeviceService {
  /** The path of a service of `upstream.routes`; undefined for the main service. */
  readonly route: string | undefined
  readonly config: ServiceConfig
  readonly downloadTimeout: number
  readonly target: UpstreamTarget
  readonly metrics: UpstreamMetrics
  readonly changes: ReturnType<typeof createDeviceChanges>
  readonly places: ServicePlaces
  readonly open: {
    readonly streams: OpenStreams
    readonly upgrading: { count: number }
    readonly finishing: Set<string>
  }
  readonly quirks: Quirks
  readonly connections: Connections
  readonly breaker: Breaker
  readonly trouble: ReturnType<typeof watchTrouble>
  readonly events: UpstreamMetrics
  /** How header fields change on the way. */
  readonly fields: RoundTripService['fields']
  /** The sidecar's own account at the service, if it has one. */
  readonly signIn: OpenedSignIn | undefined
  readonly buffering: UploadBuffering | undefined
  readonly health: ReturnType<typeof createHealthCheck>
  readonly upstream: Upstream
  /** Lets no further request share the responses that are there (`upstream.share`). */
  readonly closeShared: () => void
}

/** A change of these keys needs new connections. */
const CONNECTIONS = [
  'url',
  'tls',
  'reuse',
  'parser',
  'version',
  'connectTimeout',
  'responseTimeout',
  'idleTimeout',
] as const
/** A change of these keys, or of the address, needs new places. */
const PLACES = ['maxInFlight', 'queue'] as const

type Key = keyof ServiceConfig

/** Whether two services have the same values for these keys. */
function agree(one: ServiceConfig, other: ServiceConfig, keys: readonly Key[]): boolean {
  return keys.every((key) => isDeepStrictEqual(one[key], other[key]))
}

/** Whether a service takes of the places of the other: it has the same address, and the same bounds. */
export function sharesPlaces(one: ServiceConfig, other: ServiceConfig): boolean {
  return isSameAddress(one.url, other.url) && agree(one, other, PLACES)
}

/** Whether a reload keeps the service: no key differs, no file that one of `upstream.headers` names, and nothing else in its fields. */
export function isUnchanged(
  { config, downloadTimeout, fields: { request, response } }: DeviceService,
  next: NamedService,
  nextTimeout: number,
  settings: ServiceSettings,
): boolean {
  // Proof of the cast: these are the keys of a service, and `routes` beside them, which are services of their own.
  const keys = Object.keys({ ...config, ...next.service }) as (Key | 'routes')[]
  const own = keys.filter((key): key is Key => key !== 'routes')
  return (
    downloadTimeout === nextTimeout &&
    agree(config, next.service, own) &&
    isDeepStrictEqual(request.added, requestOf(settings, next.path[2]).added) &&
    isDeepStrictEqual(response.replaced, settings.replaced)
  )
}

/**
 * Opens a service of the device. It takes over each part of `before` whose keys are the same. Rejects with `SetupError` if a file that its
 * configuration names cannot be used.
 */
export async function openDeviceService(
  { path, service }: NamedService,
  { inFleet, ceilings, sharing, downloadTimeout, siblings, leaving }: Shared,
  { clock, settings, live, uploadTimeout, bounds, onBug, ...deps }: ServiceDependencies,
  before?: DeviceService,
): Promise<DeviceService> {
  const route = path[2]
  const key = path.join('.')
  const log = route === undefined ? deps.log : deps.log.child({ route })
  const has = (keys: readonly Key[]): boolean => before !== undefined && agree(before.config, service, keys)
  const sibling = siblings.find((each) => sharesPlaces(each.config, service))
  // Each of these is `before` if the new service takes over the device's address, its places, or its places and connections.
  const sameDevice = has(['url']) ? before : undefined
  const samePlaces = sibling?.places === before?.places ? before : undefined
  const sameConnections = samePlaces !== undefined && has(CONNECTIONS) ? before : undefined

  const metrics = deps.metrics.upstream(route)
  const target = sameConnections?.target ?? (await upstreamTarget(service, key))
  const changes = sameDevice?.changes ?? createDeviceChanges(log, formatUpstreamUrl(service.url), clock)
  const open = sameDevice?.open ?? {
    streams: { all: 0, clients: new Map() },
    upgrading: { count: 0 },
    finishing: new Set(),
  }
  const places =
    sibling?.places ??
    new ServicePlaces(service, {
      ...{ route, inFleet, ceilings, metrics, clock, log },
      before: lastAt(service, leaving, siblings)?.places,
    })
  const { queue, learner, longPaths, capacity } = places
  const quirks = sameConnections?.quirks ?? new Quirks(clock, log)
  const connections =
    sameConnections?.connections ??
    createConnections(target, upstreamDeadlines(service), clock, {
      capacity,
      onQuirk: (kind, malformed) => quirks.found(kind, malformed),
    })
  places.share(connections)
  const breaker = sameConnections?.breaker ?? createBreaker(clock)
  const trouble =
    sameConnections?.trouble ??
    watchTrouble(target, {
      ...{ key, clock, breaker, onBug },
      patience: service.connectTimeout,
      onFound: ({ reason, remedy }) =>
        log.error({ reason, remedy }, 'cannot connect to the device: a fault in its TLS or in upstream.url'),
    })
  const events: UpstreamMetrics = sameConnections?.events ?? {
    ...metrics,
    failed(failure) {
      trouble.failed(failure)
      metrics.failed(failure)
    },
  }
  const fields = fieldsOf(target.origin, requestOf(settings, route), settings.replaced)
  const sameAccount = sameConnections !== undefined && has(['auth']) ? sameConnections : undefined
  const signIn =
    sameAccount?.signIn ??
    (await openSignIn(service.auth, {
      ...{ key: `${key}.auth`, connections, origin: target.origin, clock },
      request: () => fields.request,
      events: signInLog(log),
      before: before?.signIn,
    }))
  const { streamAfter } = service
  const sameBuffering = samePlaces !== undefined && has(['bufferUploads', 'version']) ? samePlaces : undefined
  const buffering = sameBuffering?.buffering ?? uploadBuffering(service, bounds, key, clock, log)
  const health =
    sameConnections !== undefined && has(['health'])
      ? sameConnections.health
      : createHealthCheck(service.health, connections, breaker, {
          ...{ onResult: events.up, inPlace: places.inPlace, onFault: trouble.failed, onBug },
        })
  const upstream = createUpstream({
    ...placesOf(service, bounds, queue, clock),
    ...{
      route: route ?? '',
      connections,
      fields,
      learner,
      longPaths,
      breaker,
      signIn,
      events,
      clock,
      uploadTimeout,
    },
    downloadPace: downloadPace(clock, downloadTimeout, service.queue.timeout, queue),
    streams: createStreams(clock, service, streamAfter, places, connections, open.streams),
    streamAfter,
    upgrading: open.upgrading,
    maxBody: service.maxBody === 'off' ? Number.POSITIVE_INFINITY : service.maxBody,
    finishing: service.finishUploads
      ? createFinishingUploads(live, service.responseTimeout, open.finishing)
      : undefined,
    buffering,
    tunnelIdleTimeout: service.tunnelIdleTimeout,
    maxTunnels: service.maxTunnels,
  })
  const { shared: onShared } = metrics
  const shared = sharing.of(upstream, service, { clock, fields, route: route ?? '', streamAfter, onShared })
  return {
    route,
    config: service,
    downloadTimeout,
    target,
    metrics,
    changes,
    places,
    open,
    quirks,
    connections,
    breaker,
    trouble,
    events,
    fields,
    signIn,
    buffering,
    health,
    upstream: shared.upstream,
    closeShared: shared.close,
  }
}

/** The first of these services at this address that has a line of its own. */
function lastAt(
  { url }: ServiceConfig,
  leaving: readonly DeviceService[],
  others: readonly DeviceService[],
): DeviceService | undefined {
  return leaving.find(
    ({ config, places }) =>
      isSameAddress(config.url, url) && !others.some((each) => each.places.queue.line === places.queue.line),
  )
}

/** What is at the device, over its services. @param elsewhere services that have been replaced, and still have requests in flight */
export function loadOf(all: readonly DeviceService[], elsewhere: readonly DeviceService[]): DeviceLoad {
  const load = {
    inFlight: 0,
    queued: 0,
    limit: 0,
    tolerant: all.some(({ connections }) => connections.tolerant),
  }
  for (const { queue } of new Set(all.map(({ places }) => places))) {
    load.inFlight += queue.inside
    load.queued += queue.waiting
    load.limit += queue.places
  }
  for (const { buffering } of all) load.queued += buffering?.queue.waiting ?? 0
  for (const line of new Set(elsewhere.map(({ places }) => places.queue.line))) load.inFlight += line.inside
  return load
}

/** The places for `postern status`. @param all the services; those that have these places count together */
export function useOf(places: ServicePlaces, all: readonly DeviceService[]): PlacesUse {
  const sharing = all.filter((each) => each.places === places)
  const most = besidePlaces(sharing.map(({ config }) => config))
  const streams = { used: 0, limit: most.streams }
  const tunnels = { used: 0, limit: most.tunnels }
  for (const { open } of sharing) {
    streams.used += open.streams.all
    tunnels.used += open.upgrading.count
  }
  return { ...places.condition(), streams, tunnels, waits: places.waited() }
}

/** The condition of the service for the live page. */
export function conditionOf(service: DeviceService): ServiceCondition {
  const { route, config, metrics, places, quirks, connections, buffering, breaker } = service
  const { queue, learner } = places
  const { ceiling } = learner?.law ?? {}
  const limit = ceiling && roomUnder(ceiling)
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
    ceiling: limit === undefined ? null : { kind: ceiling?.wall === undefined ? 'guess' : 'broke', limit },
  }
}

/** From now on, its places and fields are in effect, it logs changes of the service's state, and checks its health. */
export function activate({ places, metrics, changes, health, signIn, fields }: DeviceService): void {
  places.begin()
  metrics.watch(changes.changed)
  health?.begin()
  signIn?.sendWith(fields.request)
}

/** Ends the timers of a service, except those of parts that `other` has, too. */
export function quiet({ health, trouble, changes, closeShared }: DeviceService, other?: DeviceService): void {
  closeShared()
  if (other?.health !== health) health?.close()
  if (other?.trouble !== trouble) trouble.close()
  if (other?.changes !== changes) changes.close()
}

/**
 * Call this when `next` has replaced a service, or the service is gone. Its requests in flight go on.
 *
 * @param all the services from now on
 */
export function retire(
  service: DeviceService,
  next: DeviceService | undefined,
  all: readonly DeviceService[],
): void {
  const { connections, places, metrics } = service
  quiet(service, next)
  if (next === undefined || !isSameDevice(service, next)) metrics.forget(next !== undefined)
  if (next?.connections !== connections) {
    connections.retire()
    places.drop(connections)
  }
  if (all.every((each) => each.places !== places))
    void places.leave(next !== undefined && isSameDevice(service, next) ? next.places : undefined)
}

/**
 * Closes a service that was opened for a refused reload.
 *
 * @param all the services that stay
 */
export async function discard(
  service: DeviceService,
  before: DeviceService | undefined,
  all: readonly DeviceService[],
): Promise<void> {
  const { connections, places } = service
  quiet(service, before)
  if (before?.connections !== connections) places.drop(connections)
  if (all.every((each) => each.places !== places)) await places.leave(undefined)
  if (before?.connections !== connections) await connections.close()
}

function isSameDevice(one: DeviceService, other: DeviceService): boolean {
  return agree(one.config, other.config, ['url'])
}

/** Throws for a route that the configuration does not have. */
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
  const { host, names, rewrite, response } = request
  return { request, response: { origin, host, names, rewrite, replaced, ...response } }
}
