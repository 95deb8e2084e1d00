import type { Config } from '../config/schema.ts'
import { type NamedService, servicesOf } from '../config/upstream-fields.ts'
import type { FleetPlaces } from '../fleet/places.ts'
import { openCeilings } from '../forward/ceilings.ts'
import { createRoutedUpstream } from '../forward/routes.ts'
import { createTargets } from '../forward/settings.ts'
import { createSharing } from '../forward/sharing.ts'
import type { DeviceLoad } from '../record/upstream-metrics.ts'
import { everySecond } from '../system/every-second.ts'
import { causeOf } from '../system/setup-error.ts'
import {
  type DeviceService,
  openDeviceService,
  type ServiceDependencies,
  type ServiceSettings,
  type Shared,
} from './device-service.ts'

export type DeviceServices = Awaited<ReturnType<typeof openDeviceServices>>

const UNKEPT = 'what the device can take at once is not kept: it is learned anew after a restart'

/**
 * Creates the configured services, the main one first. Rejects with `SetupError` if a file that the configuration names cannot be used.
 *
 * @param opened closes those that are open, if another one or a later part of the sidecar cannot be opened
 */
export async function openDeviceServices(
  config: Config,
  deps: ServiceDependencies,
  opened: AsyncDisposableStack,
) {
  const [, ...routes] = servicesOf(config.upstream)
  const targets = createTargets()
  const sharing = createSharing(servicesOf(config.upstream).map(({ service }) => service))
  const ceilings = openCeilings(config.stateDir, deps.clock, (error) => deps.log.warn(causeOf(error), UNKEPT))
  const inFleet = typeof config.tokens.store !== 'string'
  const shared: Shared = { inFleet, targets, ceilings, sharing, downloadTimeout: config.listen.idleTimeout }
  const open = async (named: NamedService): Promise<DeviceService> => {
    const service = await openDeviceService(named, shared, deps)
    opened.defer(() => service.close())
    return service
  }
  const main = await open({ path: ['upstream'], service: config.upstream })
  const all = [main]
  for (const each of routes) all.push(await open(each))
  const seconds = everySecond(deps.clock, () => {
    if (!ceilings.followClock()) return
    for (const each of all) each.retime()
  })
  opened.defer(seconds.close)
  const upstreams = new Map(all.slice(1).map(({ route = '', upstream }) => [route, upstream]))
  return {
    upstream: sharing.watch(createRoutedUpstream(main.upstream, upstreams)),
    signIn: main.signIn,
    load(): DeviceLoad {
      const loads = all.map(({ load }) => load)
      return {
        inFlight: sum(loads, ({ inFlight }) => inFlight),
        queued: sum(loads, ({ queued }) => queued),
        limit: sum(loads, ({ limit }) => limit),
        tolerant: loads.some(({ tolerant }) => tolerant),
      }
    },
    bounds: {
      queueSize: sum(all, ({ bounds }) => bounds.queueSize),
      maxTunnels: sum(all, ({ bounds }) => bounds.maxTunnels),
    },
    places: () => all.map((each) => each.places()),
    /** The quirks that the responses of each service have shown. */
    quirks: () => all.flatMap((each) => each.quirks()),
    /** Shares what breaks the device with the other sidecars of the fleet. */
    join: (places: FleetPlaces) => Promise.all(all.map((each) => each.join(places))),
    /** Forgets what each service can take at once, so that more is tried again. Returns for how many services anything was known. */
    retry: () => all.filter((each) => each.forgetCeiling()).length,
    conditions: () => all.map((each) => each.condition()),
    /** Why the sidecar is not ready, according to the health checks; empty if it is. */
    unreadyReasons: () => (all.every(({ isReady }) => isReady) ? [] : ['the device does not respond']),
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

function sum<T>(all: readonly T[], of: (each: T) => number): number {
  return all.reduce((total, each) => total + of(each), 0)
}
