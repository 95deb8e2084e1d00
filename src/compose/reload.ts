import { isDeepStrictEqual } from 'node:util'
import { type Changes, changesBetween } from '../config/changes.ts'
import { appliedTo } from '../config/restart-keys.ts'
import type { Config } from '../config/schema.ts'
import type { ServedCertificate } from '../listen/served-certificate.ts'
import type { RefusedReload } from '../overview/model.ts'
import type { Replacement } from '../password/sources.ts'
import type { LogDestination } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import type { Clock } from '../system/clock.ts'
import { firstOf, isBug, reasonOf, SetupError } from '../system/setup-error.ts'
import { type Memory, planMemory } from './client-memory.ts'
import type { DeviceServices } from './device-services.ts'
import { warnOfNextStart } from './next-start.ts'
import { applyToState, type Reloaded } from './open-state.ts'
import { deriveSettings, type Settings } from './settings.ts'

/** Loads and applies a configuration: see `Sidecar.reload`. */
type Reload = (load: () => Config, locate?: (error: unknown) => unknown) => Promise<Changes>

/** Counts reloads, and remembers the latest one if it was refused. */
export function watchReloads(clock: Pick<Clock, 'wall'>, metrics: Pick<Metrics, 'configReloaded'>) {
  let refused: RefusedReload | null = null
  return {
    succeeded(): void {
      metrics.configReloaded('success')
      refused = null
    },
    failed(error: unknown): void {
      metrics.configReloaded('failure')
      if (!(firstOf(error) instanceof SidecarStopped))
        refused = { at: clock.wall(), problems: problemsIn(error) }
    },
    refused: (): RefusedReload | null => refused,
  }
}

/** The problems of a refused configuration or certificate. */
export function problemsIn(error: unknown): readonly string[] {
  if (isBug(error)) return ['an internal error, which the log has']
  const first = firstOf(error)
  return first instanceof SetupError ? first.problems : [reasonOf(first)]
}

/** The error for a reload that comes after the stop. */
export class SidecarStopped extends SetupError {
  constructor() {
    super('the sidecar was stopped: it does not reload', { exitCode: 1 })
  }
}

interface ReloadedParts extends Reloaded {
  /** The settings that all parts read. A reload replaces their values. */
  readonly settings: Settings
  readonly destination: Pick<LogDestination, 'reformat'>
  readonly services: Pick<DeviceServices, 'replace'>
  readonly certificate: Pick<ServedCertificate, 'reload'>
  readonly memory: Pick<Memory, 'apply'>
  readonly admin: {
    readonly closeDenied: () => void
    readonly replacePassword: (next: Config, limit: number) => Promise<Replacement>
  }
  /** Puts the caps and deadlines of connections into effect. */
  readonly applyLimits: (next: Config) => void
  readonly reloads: Pick<ReturnType<typeof watchReloads>, 'succeeded' | 'failed'>
  readonly isStopping: () => boolean
  readonly warnOf: (config: Config) => Promise<void>
  readonly onBug: (error: unknown) => void
}

/**
 * Reloads one configuration after the other: see `Sidecar.reload`.
 *
 * @param start the configuration at the start, which stays in effect for the keys that need a restart
 */
export function createReload(start: Config, parts: ReloadedParts): Reload {
  const {
    settings,
    destination,
    services,
    certificate,
    memory,
    admin,
    applyLimits,
    reloads,
    isStopping,
    warnOf,
    onBug,
    state,
    log,
  } = parts
  let last = Promise.resolve()

  /** Does everything that can fail first, then the change in one step, so a failed reload changes nothing. */
  async function apply(next: Config): Promise<Changes> {
    const applied = appliedTo(start, next)
    /** Closes the parts that were opened for a refused reload. */
    await using refused = new AsyncDisposableStack()
    const nextSettings = await deriveSettings(applied, settings.bounds)
    refuseIfStopping()
    const plan = await planMemory(applied)
    const passwords = await state.password.replace(applied, plan.limit)
    refused.defer(passwords.discard)
    const pagePassword = await admin.replacePassword(applied, plan.limit)
    refused.defer(pagePassword.discard)
    const applyFormat = await destination.reformat(applied.log.format)
    const device = await services.replace(applied, nextSettings)
    refused.defer(device.discard)
    await certificate.reload(applied.listen.tls)
    // The new certificate stays, but a listener that stops presents it to no new connection.
    refuseIfStopping()
    const changes = {
      live: changesBetween(settings.config, applied),
      restart: changesBetween(applied, next),
    }
    const isListenSame = isDeepStrictEqual(settings.config.listen, applied.listen)
    const names = [...(settings.gate.scopes?.keys() ?? [])]
    Object.assign(settings, nextSettings)
    // Nothing below can refuse the reload, so what was opened stays open.
    refused.move()
    passwords.swap()
    pagePassword.swap()
    device.swap()
    if (!isListenSame) applyLimits(applied)
    memory.apply(plan)
    admin.closeDenied()
    log.level = applied.log.level
    applyFormat()
    await applyToState(settings, names, parts)
    await warnOf(next)
    await warnOfNextStart(next, log).catch(onBug)
    return changes
  }

  function refuseIfStopping(): void {
    if (isStopping()) throw new SidecarStopped()
  }

  return (load, locate = (error) => error) => {
    const reloaded = last
      .then(() => apply(load()))
      .catch((error: unknown) => {
        throw locate(error)
      })
    last = reloaded.then(reloads.succeeded, reloads.failed)
    return reloaded
  }
}
