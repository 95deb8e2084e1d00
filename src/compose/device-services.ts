import type { PlacesCondition } from '../admin/control-socket.ts'
import { formatUpstreamUrl } from '../config/address.ts'
import type { Config } from '../config/schema.ts'
import { type NamedService, placesBounds, type ServiceConfig, servicesOf } from '../config/upstream-fields.ts'
import { createBreaker, startHealthCheck } from '../device/breaker.ts'
import { createConnections, type Malformed, type Quirk } from '../device/connections.ts'
import { watchTrouble } from '../device/diagnosis.ts'
import type { FleetPlaces } from '../fleet/places.ts'
import {
  type Ceiling,
  type Ceilings,
  kindOf,
  mostUnder,
  nextAttempt,
  openCeilings,
  withoutFleet,
} from '../forward/ceilings.ts'
import { createPlaces } from '../forward/learner.ts'
import { downloadPace } from '../forward/place.ts'
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
import { createSharing, type Sharing } from '../forward/sharing.ts'
import { createStreams } from '../forward/streams.ts'
import { createUpstream } from '../forward/upstream.ts'
import type { QuirkCondition, ServiceCondition } from '../overview/model.ts'
import { createDeviceChanges } from '../record/device-changes.ts'
import type { Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import type { DeviceLoad, StrikeKind, UpstreamMetrics } from '../record/upstream-metrics.ts'
import { openSignIn, signInLog } from '../sign-in/settings.ts'
import { type Clock, everySecond } from '../system/clock.ts'
import { createFleetMember } from './fleet-places.ts'
import type { Settings } from './settings.ts'

type ServiceSettings = Pick<Settings, 'request' | 'replaced'>

interface Dependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly settings: ServiceSettings
  /** How long a client may pause within its request body (ms). */
  readonly uploadTimeout: () => number
  readonly onBug: (error: unknown) => void
}

/** What all services of the device share. */
interface Shared {
  /** The tokens are shared with other sidecars, and what breaks the device, too. */
  readonly inFleet: boolean
  readonly targets: Targets
  readonly ceilings: Ceilings
  readonly sharing: Sharing
}

type DeviceService = Awaited<ReturnType<typeof openDeviceService>>
export type DeviceServices = Awaited<ReturnType<typeof openDeviceServices>>

const UNKEPT = 'what the device can take at once is not kept: it is learned anew after a restart'

/**
 * Creates the configured services, the main one first. Rejects with `SetupError` if a file that the configuration names cannot be used.
 *
 * @param opened closes those that are open, if another one or a later part of the sidecar cannot be opened
 */
export async function openDeviceServices(config: Config, deps: Dependencies, opened: AsyncDisposableStack) {
  const [, ...routes] = servicesOf(config.upstream)
  const targets = createTargets()
  const sharing = createSharing(servicesOf(config.upstream).map(({ service }) => service))
  const inFleet = typeof config.tokens.store !== 'string'
  const ceilings = openCeilings(config.stateDir, deps.clock, (err) => deps.log.warn({ err }, UNKEPT))
  const open = async (named: NamedService): Promise<DeviceService> => {
    const service = await openDeviceService(named, config, { inFleet, targets, ceilings, sharing }, deps)
    opened.defer(service.close)
    return service
  }
  const main = await open({ path: ['upstream'], service: config.upstream })
  const all = [main]
  for (const each of routes) all.push(await open(each))
  const seconds = everySecond(() => {
    if (!ceilings.followClock()) return
    for (const { retime } of all) retime()
  })
  opened.defer(seconds.close)
  const sum = (of: (service: DeviceService) => number): number =>
    all.reduce((total, service) => total + of(service), 0)
  const upstreams = new Map(all.slice(1).map(({ route = '', upstream }) => [route, upstream]))
  return {
    upstream: sharing.watch(createRoutedUpstream(main.upstream, upstreams)),
    signIn: main.signIn,
    load: (): DeviceLoad => ({
      inFlight: sum(({ queue }) => queue.inside),
      queued: sum(({ queue, buffering }) => queue.waiting + (buffering?.queue.waiting ?? 0)),
      limit: sum(({ queue }) => queue.places),
      tolerant: all.some(({ connections }) => connections.tolerant),
    }),
    bounds: {
      // Uploads that wait to be buffered have a queue of their own.
      queueSize: sum(({ config: { queue }, buffering }) => queue.size * (buffering === undefined ? 1 : 2)),
      maxTunnels: sum(({ config: { maxTunnels } }) => maxTunnels),
    },
    places: () => all.map(({ places }) => places()),
    /** The quirks that the responses of each service have shown. */
    quirks: () =>
      all.flatMap(({ route, quirks }) => quirks().map((each) => ({ route: route ?? null, ...each }))),
    /** Shares what breaks the device with the other sidecars of the fleet. */
    join: (places: FleetPlaces) => Promise.all(all.map(({ join }) => join(places))),
    /** Forgets what each service can take at once, so that more is tried again. Returns for how many services anything was known. */
    retry: () => all.filter(({ forgetCeiling }) => forgetCeiling()).length,
    conditions: () => all.map(({ condition }) => condition()),
    /** Why the sidecar is not ready, according to the health checks; empty if it is. */
    unreadyReasons: () =>
      all.some(({ health }) => health?.up === false) ? ['the device does not respond'] : [],
    applySettings(next: ServiceSettings): void {
      for (const service of all) service.applySettings(next)
    },
    /** Ends the sessions of `upstream.auth` at the device. */
    async signOut() {
      await Promise.all(all.map(({ signIn }) => signIn?.signOut()))
    },
    renewTls: targets.renew,
    async close() {
      seconds.close()
      await Promise.all(all.map((service) => service.close()))
    },
  }
}

const QUIRKS: Readonly<Record<Quirk, string>> = {
  stray: 'the device sends bytes after its response; late ones may reach the next client: see upstream.reuse',
  tolerant: 'the device sends malformed HTTP: from now on parsed tolerantly, with one connection per request',
  delayed:
    'a kept connection costs 40 ms a request (delayed acknowledgements): from now on one connection per request; set upstream.reuse: never',
}

async function openDeviceService(
  { path, service }: NamedService,
  { listen }: Config,
  { inFleet, targets, ceilings, sharing }: Shared,
  { clock, settings, uploadTimeout, onBug, ...deps }: Dependencies,
) {
  /** The path of a service of `upstream.routes`; undefined for the main service. */
  const route = path[2]
  const key = path.join('.')
  const log = route === undefined ? deps.log : deps.log.child({ route })
  const metrics = deps.metrics.upstream(route)
  const changes = createDeviceChanges(log, clock)
  metrics.watch(changes.changed)
  const target = await targets.open(service, key)
  const breaker = createBreaker(clock)
  const trouble = watchTrouble(target, {
    key,
    clock,
    breaker,
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
  const bounds = placesBounds(service)
  const device = `${formatUpstreamUrl(service.url)} ${bounds.min}-${bounds.max}`
  const memory: CeilingMemory = {
    get() {
      const ceiling = ceilings.of(route ?? '', device)
      return inFleet ? ceiling : withoutFleet(ceiling, clock.monotonic())
    },
    keep: (ceiling) => ceilings.keep(route ?? '', device, ceiling),
  }
  let fleetPlaces: FleetPlaces | undefined
  const { queue, learner } = openPlaces(service, memory, metrics, {
    ...{ inFleet, clock, log },
    onCeiling: (ceiling, isStrike) => {
      if (member?.changed(ceiling, isStrike)) fleetPlaces?.news()
    },
  })
  const member =
    inFleet && learner !== undefined
      ? createFleetMember({
          ...{ name: `${route ?? ''} ${device}`, sidecar: ceilings.sidecar },
          ...{ learner, queue, clock, log },
        })
      : undefined
  const found: { readonly kind: Quirk; readonly at: number; readonly malformed: Malformed | null }[] = []
  const quirks = (): readonly QuirkCondition[] => {
    const ahead = clock.wall() - clock.monotonic()
    return found.map(({ kind, at, malformed }) => ({ kind, since: Math.round(ahead + at), malformed }))
  }
  const connections = createConnections(target, upstreamDeadlines(service), clock, {
    room: {
      isFull: () => queue.places === 1 || learner?.isBounded === true,
      places: () => queue.places,
      isCrowded: () => queue.inside > queue.places,
      opens: (present) => learner?.opens(present),
      refused: () => learner?.refused(),
      reset: () => learner?.reset(),
    },
    onQuirk(kind, malformed) {
      found.push({ kind, at: clock.monotonic(), malformed: malformed ?? null })
      log.warn({ ...malformed }, QUIRKS[kind])
    },
  })
  const fieldsOf = (request: RequestFieldSettings, replaced: readonly string[]) => ({
    request,
    response: { origin: target.origin, host: request.host, rewrite: request.rewrite, replaced },
  })
  const request = route === undefined ? settings.request : await readRequestFields(service, key)
  const fields = fieldsOf(request, settings.replaced)
  const signIn = await openSignIn(service.auth, {
    key: `${key}.auth`,
    connections,
    origin: target.origin,
    request: () => fields.request,
    clock,
    events: signInLog(log),
  })
  const paced = placesOf(service, queue)
  const buffering = uploadBuffering(service, key, clock, log)
  const condition = (): ServiceCondition => ({
    ...metrics.condition(),
    route: route ?? null,
    url: formatUpstreamUrl(service.url),
    checked: service.health.path !== null,
    breaker: breaker.open ? 'open' : 'closed',
    tolerant: connections.tolerant,
    quirks: quirks(),
    queue: {
      queued: Math.max(queue.waiting, buffering?.queue.waiting ?? 0),
      size: service.queue.size,
      maxInFlight: queue.places,
    },
    ceiling: learner?.isBounded === true ? (learner.ceiling.wall?.kind ?? 'guess') : null,
  })
  const health = startHealthCheck(service.health, connections, breaker, {
    onResult: events.up,
    onFault: trouble.failed,
    onBug,
  })
  const streams = createStreams(service, queue, connections)
  const upstream = createUpstream({
    route: route ?? '',
    connections,
    paces: { upload: paced.pace, download: downloadPace(listen.idleTimeout, service.queue.timeout, queue) },
    fields,
    idleTimeout: service.idleTimeout,
    streamAfter: service.streamAfter,
    ...paced,
    uploadTimeout,
    buffering: buffering && { ...buffering, uploadTimeout },
    breaker,
    signIn,
    clock,
    maxTunnels: service.maxTunnels,
    learner,
    get streams() {
      return queue.places > 1 ? streams : undefined
    },
    events,
  })
  return {
    route,
    config: service,
    upstream: sharing.of(upstream, service, { clock, fields, route: route ?? '', onShared: metrics.shared }),
    signIn,
    queue,
    buffering,
    connections,
    health,
    condition,
    quirks,
    places(): PlacesCondition {
      const { ceiling } = learner ?? {}
      const until = ceiling && nextAttempt(ceiling)
      return {
        route: route ?? null,
        used: queue.inside,
        limit: queue.places,
        learned: learner !== undefined,
        triedAgainAt: until === undefined ? null : onWallClock(until, clock),
        wall: ceiling?.wall?.kind ?? null,
        fleet: ceiling?.wall?.fleet?.sum ?? null,
      }
    },
    /** Shares what breaks the device with the other sidecars. Resolves when the store has answered, or has not. */
    async join(places: FleetPlaces): Promise<void> {
      if (member === undefined) return
      fleetPlaces = places
      await places.join(member.member)
    },
    /** Forgets what broke the device. Returns whether anything was known. */
    forgetCeiling(): boolean {
      const known = learner?.isBounded === true
      learner?.forget()
      member?.lifted()
      fleetPlaces?.news()
      if (known) log.info('what the device can take at once is forgotten, as the operator says')
      return known
    },
    /** The wall clock was set, and with it the times of the ceiling. */
    retime: () => learner?.retime(memory.get()),
    /** A reload changes the request fields of the main service only. */
    applySettings(next: ServiceSettings): void {
      Object.assign(fields, fieldsOf(route === undefined ? next.request : fields.request, next.replaced))
    },
    async close() {
      health?.close()
      trouble.close()
      changes.close()
      await connections.close()
    },
  }
}

const STRIKES: Readonly<Record<StrikeKind, string>> = {
  guess: 'the device had no room for more requests at once: the bound is lower until one more is tried again',
  broke:
    'one more request at once broke the device: the bound holds for a week, then one more is tried once; postern retry ends it sooner',
  barred:
    'one more request at once broke the device again: it is not tried by itself any more, until you run postern retry',
}

function onWallClock(time: number, clock: Clock): number {
  return Math.round(time + clock.wall() - clock.monotonic())
}

/** What is kept of the ceiling of one service. */
interface CeilingMemory {
  get(): Ceiling
  keep(ceiling: Ceiling): void
}

/** The places at a service. A line of the log says when the learned bound has doubled or halved since the last one. */
function openPlaces(
  service: ServiceConfig,
  memory: CeilingMemory,
  { limitChanged, struck }: UpstreamMetrics,
  {
    inFleet,
    clock,
    log,
    onCeiling,
  }: Pick<Dependencies, 'clock' | 'log'> & {
    readonly inFleet: boolean
    readonly onCeiling: (ceiling: Ceiling, isStrike: boolean) => void
  },
): ReturnType<typeof createPlaces> {
  let told = 2
  return createPlaces({
    ...placesBounds(service),
    waiting: service.queue.size,
    maxWait: service.queue.timeout,
    clock,
    ceiling: memory.get(),
    inFleet,
    onChange(reason, limit) {
      limitChanged(reason)
      if (limit < 2 * told && limit > told / 2) return
      told = limit
      log.info({ limit, reason }, 'learned how many requests the device can take at once')
    },
    onCeiling(ceiling, strike) {
      memory.keep(ceiling)
      onCeiling(ceiling, strike !== undefined)
      if (strike === undefined) return
      const kind = kindOf(ceiling)
      struck(kind)
      const until = nextAttempt(ceiling)
      const triedAgainAt = until === undefined ? undefined : new Date(onWallClock(until, clock)).toISOString()
      log.warn({ limit: mostUnder(ceiling), reason: strike, triedAgainAt }, STRIKES[kind])
    },
  })
}
