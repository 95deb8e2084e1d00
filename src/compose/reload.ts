import { type Changes, changesBetween } from '../config/changes.ts'
import type { Config } from '../config/schema.ts'
import type { ServedCertificate } from '../listen/certificate.ts'
import type { Metrics } from '../record/metrics.ts'
import { SetupError } from '../system/setup-error.ts'
import type { DeviceServices } from './device-services.ts'
import { warnOfNextStart } from './next-start.ts'
import { deriveSettings, type Settings } from './settings.ts'
import { applyToState, type Reloaded } from './state.ts'

/** A reload came too late. */
export class SidecarStopped extends SetupError {
  constructor() {
    super('the sidecar was stopped: it does not reload', { exitCode: 1 })
  }
}

interface ReloadedParts extends Reloaded {
  /** What each part reads. A reload replaces what it holds. */
  readonly settings: Settings
  readonly services: Pick<DeviceServices, 'renewTls' | 'applySettings'>
  readonly certificate: Pick<ServedCertificate, 'reload'>
  readonly admin: { readonly closeDenied: () => void }
  readonly metrics: Pick<Metrics, 'configReloaded'>
  readonly isStopping: () => boolean
  readonly warnOf: (config: Config) => Promise<void>
  readonly onBug: (error: unknown) => void
}

/**
 * Reloads one configuration after the other: see `Sidecar.reload`.
 *
 * @param start the configuration at the start, which stays in effect for the keys that need a restart
 */
export function createReload(start: Config, parts: ReloadedParts): (load: () => Config) => Promise<Changes> {
  const { settings, services, certificate, admin, metrics, isStopping, warnOf, onBug, ...ofState } = parts
  let last = Promise.resolve()

  /** First everything that can fail, then the change itself in one step, so a failed reload changes nothing. */
  async function apply(next: Config): Promise<Changes> {
    const nextSettings = await deriveSettings(next, start)
    refuseIfStopping()
    const applyTls = await services.renewTls(next.upstream)
    await certificate.reload(next.listen.tls)
    refuseIfStopping()
    const changes = {
      live: changesBetween(settings.config, next).live,
      restart: changesBetween(start, next).restart,
    }
    const names = [...(settings.gate.scopes?.keys() ?? [])]
    Object.assign(settings, nextSettings)
    services.applySettings(settings)
    applyTls()
    admin.closeDenied()
    ofState.log.level = next.log.level
    await applyToState(settings, names, ofState)
    await warnOf(next)
    await warnOfNextStart(next, ofState.log).catch(onBug)
    return changes
  }

  function refuseIfStopping(): void {
    if (isStopping()) throw new SidecarStopped()
  }

  return (load) => {
    const reloaded = last.then(() => apply(load()))
    last = reloaded.then(
      () => metrics.configReloaded('success'),
      () => metrics.configReloaded('failure'),
    )
    return reloaded
  }
}
