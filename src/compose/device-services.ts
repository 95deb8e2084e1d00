import type { Config } from '../config/schema.ts'
import { servicesOf } from '../config/upstream-fields.ts'
import type { FleetPlaces } from '../fleet/places.ts'
import { openCeilings } from '../forward/ceilings-file.ts'
import { createRoutedUpstream } from '../forward/routes.ts'
import { upstreamTarget } from '../forward/service-settings.ts'
import { createSharing, type Sharing } from '../forward/sharing.ts'
import type { DeviceSignIn } from '../password/device-source.ts'
import type { DeviceLoad } from '../record/upstream-metrics.ts'
import { everySecond } from '../system/every-second.ts'
import { causeOf } from '../system/setup-error.ts'
import {
  activate,
  conditionOf,
  type DeviceService,
  discard,
  isUnchanged,
  loadOf,
  openDeviceService,
  quiet,
  retire,
  type ServiceDependencies,
  type ServiceSettings,
  sharesPlaces,
  useOf,
} from './device-service.ts'
import type { ServicePlaces } from './service-places.ts'

export type DeviceServices = Awaited<ReturnType<typeof openDeviceServices>>

const UNKEPT = 'what the device can take at once is not kept: it is learned anew after a restart'

/**
 * Creates the configured services, the main one first. Rejects with `SetupError` if a file that the configuration names cannot be used.
 *
 * @param opened closes the services at a stop, and if a later part of the sidecar cannot be opened
 */
export async function openDeviceServices(
  config: Config,
  deps: ServiceDependencies,
  opened: AsyncDisposableStack,
) {
  const { clock } = deps
  const ceilings = openCeilings(config.stateDir, clock, (error) => deps.log.warn(causeOf(error), UNKEPT))
  const inFleet = typeof config.tokens.store !== 'string'
  let all: readonly DeviceService[] = []
  /** The services that a reload has replaced and that still have requests in flight, or a session at the device. */
  const retired = new Set<DeviceService>()
  let sharing: Sharing | undefined
  let fleet: FleetPlaces | undefined
  /** Called when the device refuses the password of `upstream.auth`. */
  const onRefused: (() => void)[] = []

  const serviceOf = (
    services: readonly DeviceService[],
    route: string | undefined,
  ): DeviceService | undefined => services.find((each) => each.route === route)

  /**
   * Opens the services of a configuration. Unchanged services are kept. If one cannot be opened, rejects and closes the others that it
   * opened. `added` does the same later.
   */
  async function openAll({ upstream, listen }: Config, settings: ServiceSettings) {
    const downloadTimeout = listen.idleTimeout
    const named = servicesOf(upstream)
    const nextSharing = createSharing(
      named.map(({ service }) => service),
      sharing,
    )
    // Their places stay.
    const kept = all.filter(({ config }) => named.some(({ service }) => sharesPlaces(config, service)))
    const next: DeviceService[] = []
    await using added = new AsyncDisposableStack()
    for (const each of named) {
      const before = serviceOf(all, each.path[2])
      if (before !== undefined && isUnchanged(before, each, downloadTimeout, settings)) next.push(before)
      else {
        const leaving = [...(before === undefined ? [] : [before]), ...all, ...retired]
        const services = { siblings: [...kept, ...next], leaving }
        const shared = { inFleet, ceilings, downloadTimeout, sharing: nextSharing, ...services }
        const service = await openDeviceService(each, shared, { ...deps, settings }, before)
        added.defer(() => discard(service, before, all))
        next.push(service)
      }
    }
    if (fleet !== undefined) {
      const present = new Set(placesOf(all))
      for (const places of placesOf(next)) if (!present.has(places)) await places.member?.join(fleet)
    }
    return { next, nextSharing, added: added.move() }
  }

  function upstreamOf(services: readonly DeviceService[], shared: Sharing) {
    const [main, ...routes] = services
    if (main === undefined) throw new Error('there is no main service')
    const upstreams = new Map(routes.map(({ route = '', upstream }) => [route, upstream]))
    return createRoutedUpstream(main.upstream, upstreams, shared.note)
  }

  // The stack of the first services is not kept: `close`, below, closes them.
  const first = await openAll(config, deps.settings)
  all = first.next
  sharing = first.nextSharing
  for (const each of all) activate(each)

  /** Signs out of the retired services whose requests have ended, and closes their connections. */
  async function prune(): Promise<void> {
    for (const each of retired) {
      const { connections, places, signIn } = each
      if (!connections.unused || places.queue.waiting > 0) continue
      retired.delete(each)
      if (all.every((other) => other.signIn !== signIn)) await signIn?.signOut()
      if (all.every((other) => other.connections !== connections)) await connections.close()
    }
  }

  const seconds = everySecond(clock, () => {
    if (retired.size > 0) prune().catch(deps.onBug)
    for (const each of all) each.places.waits.look()
    if (!ceilings.followClock()) return
    for (const each of all) each.places.retime()
  })
  const close = async (): Promise<void> => {
    seconds.close()
    for (const each of all) quiet(each)
    await Promise.all([...all, ...retired].map(({ connections }) => connections.close()))
  }
  opened.defer(close)

  const services = {
    upstream: upstreamOf(all, first.nextSharing),
    /** The account of the main service. */
    signIn:
      all[0]?.signIn === undefined
        ? undefined
        : ({
            async check(password) {
              const { signIn, places } = all[0] ?? {}
              return (await places?.inPlace(async () => signIn?.check(password))) ?? { kind: 'stopping' }
            },
            onRefused(listener) {
              onRefused.push(listener)
              all[0]?.signIn?.onRefused(listener)
            },
          } satisfies DeviceSignIn),
    load(): DeviceLoad {
      // The line of a service includes the requests of the service that it has replaced at the same device.
      const elsewhere = [...retired].filter(
        ({ places }) => !all.some((each) => each.places.queue.line === places.queue.line),
      )
      return loadOf(all, elsewhere)
    },
    /** The bounds on waiting requests and on tunnels. Uploads that wait to be buffered have a queue of their own. */
    bounds: () => ({
      queueSize: sum(
        all,
        ({ config: { queue }, buffering }) => queue.size * (buffering === undefined ? 1 : 2),
      ),
      maxTunnels: sum(all, ({ config: { maxTunnels } }) => maxTunnels),
    }),
    places: () =>
      placesOf(all).map((each) => ({ condition: () => useOf(each, all), retry: () => each.retry() })),
    /** The quirks that the responses of each service have shown. */
    quirks: () =>
      all.flatMap(({ route, quirks }) => quirks.all().map((each) => ({ route: route ?? null, ...each }))),
    /** From now on the places of each service are shared with the other sidecars of the fleet. */
    join(places: FleetPlaces) {
      fleet = places
      return Promise.all(placesOf(all).map(({ member }) => member?.join(places)))
    },
    conditions: () => all.map(conditionOf),
    /** Why the sidecar is not ready, according to the health checks; empty if it is. */
    unreadyReasons: () =>
      all.every(({ health }) => health?.up !== false) ? [] : ['the device does not respond'],
    /** Ends the sessions of `upstream.auth` at the device. */
    async signOut() {
      await Promise.all([...all, ...retired].map(({ signIn }) => signIn?.signOut()))
    },
    /**
     * Opens the services that differ, and reads the `tls` files of the others again. Rejects with `SetupError`, and then changes nothing.
     * `swap` puts all into effect: a request in flight ends with the service that it began with.
     */
    async replace(applied: Config, settings: ServiceSettings) {
      const { next, nextSharing, ...rest } = await openAll(applied, settings)
      await using added = rest.added
      const renewed = all.filter((each) => next.some(({ target }) => target === each.target))
      const renewals = await Promise.all(
        renewed.map(async ({ target, config: service, route }) => {
          const key = route === undefined ? 'upstream' : `upstream.routes.${route}`
          return { target, tls: (await upstreamTarget(service, key)).tls }
        }),
      )
      const kept = added.move()
      return {
        discard: () => kept.disposeAsync(),
        swap(): void {
          const before = all
          all = next
          sharing = nextSharing
          services.upstream = upstreamOf(next, nextSharing)
          for (const { target, tls } of renewals) if (target.tls !== undefined) Object.assign(target.tls, tls)
          for (const each of before) {
            const successor = serviceOf(next, each.route)
            each.closeShared()
            if (successor === each) continue
            retire(each, successor, next)
            if (successor?.connections !== each.connections || successor.signIn !== each.signIn)
              retired.add(each)
          }
          for (const each of next) if (!before.includes(each)) activate(each)
          const { signIn } = all[0] ?? {}
          if (signIn !== before[0]?.signIn) for (const listener of onRefused) signIn?.onRefused(listener)
        },
      }
    },
    close,
  }
  return services
}

/** The places of the services. Routes to the same address share theirs. */
function placesOf(all: readonly DeviceService[]): readonly ServicePlaces[] {
  return [...new Set(all.map(({ places }) => places))]
}

function sum<T>(all: readonly T[], of: (each: T) => number): number {
  return all.reduce((total, each) => total + of(each), 0)
}
