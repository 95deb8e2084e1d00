import { pid, versions } from 'node:process'
import type { Readiness } from '../admin/admin-listener.ts'
import { openControlSocket } from '../admin/control-socket.ts'
import { type Changes, type Config, changesBetween } from '../config/schema.ts'
import { createGate } from '../gate/admit.ts'
import { createLiveExchanges, type LiveExchanges } from '../gate/live-exchanges.ts'
import { createPassage } from '../gate/passage.ts'
import { openCertificate } from '../listen/certificate.ts'
import { type Addresses, createListeners, createPublicListener } from '../listen/public-listener.ts'
import { privateMemory } from '../memory/machine-memory.ts'
import type { Overview } from '../overview/overview.ts'
import { createTimeline } from '../overview/timeline.ts'
import { createAccessLog, refusedConnections } from '../record/access-log.ts'
import type { Logger } from '../record/log.ts'
import { createMetrics } from '../record/metrics.ts'
import { createRecentRequests } from '../record/recent-requests.ts'
import { type Clock, waitAtMost } from '../system/clock.ts'
import { type CollectGarbage, collectWhenIdle } from '../system/idle-collection.ts'
import { type MachineNames, machineNames } from '../system/machine-names.ts'
import { SetupError } from '../system/setup-error.ts'
import { VERSION } from '../version.ts'
import { openAdmin } from './admin.ts'
import { createConfigWarnings } from './config-warnings.ts'
import { openDeviceServices } from './device-services.ts'
import { describePlan, openMemory } from './memory.ts'
import { warnOfNextStart } from './next-start.ts'
import { openOverview } from './overview.ts'
import { deriveSettings } from './settings.ts'
import { applyToState, openState, tokenServices } from './state.ts'
import { holdStateFolder } from './state-folder.ts'

export interface Sidecar {
  /** Starts both listeners, once. Rejects with the reason if one cannot listen, or if the sidecar is stopped. */
  start(): Promise<Addresses>
  /**
   * Applies the configuration that `load` returns, without closing a connection, and returns the changed keys, including
   * those that take effect only after a restart. Reloads come one after the other, and `load` is called at its turn. Rejects, and
   * changes nothing, if `load` throws, if a file that the configuration names cannot be used, or if the sidecar is stopped.
   */
  reload(load: () => Config): Promise<Changes>
  /**
   * Ends a start in progress, then drains: requests in flight may finish within `graceMs` (default: `shutdown_grace`), the rest
   * are aborted.
   */
  stop(graceMs?: number): Promise<void>
  /** What the admin listener shows. For tests. */
  readonly overview: Overview
}

/** A reload came too late. */
export class SidecarStopped extends SetupError {
  constructor() {
    super('the sidecar was stopped: it does not reload', { exitCode: 1 })
  }
}

export interface SidecarDependencies {
  readonly clock: Clock
  readonly log: Logger
  /** What clients may call this machine; default: what the system says. */
  readonly machine?: () => MachineNames
  /** How often those names are compared with the certificate (ms). */
  readonly compareEvery?: number
  /** Undefined when Postern is embedded: the host's garbage is not ours to collect. */
  readonly collectGarbage?: CollectGarbage | undefined
}

/** Creates all parts of the sidecar and connects them. Rejects with `SetupError` if a configured file cannot be used. */
export async function createSidecar(config: Config, deps: SidecarDependencies): Promise<Sidecar> {
  const opened = new AsyncDisposableStack()
  return openParts(config, deps, opened).catch(async (error: unknown) => {
    await opened.disposeAsync()
    throw error
  })
}

/** @param opened gets everything that has to be closed if a later part cannot be opened */
async function openParts(
  config: Config,
  { clock, log, collectGarbage, machine = machineNames, compareEvery = 60_000 }: SidecarDependencies,
  opened: AsyncDisposableStack,
): Promise<Sidecar> {
  const releaseFolder = holdStateFolder(config.stateDir, pid, clock.wall())
  opened.defer(releaseFolder)
  const timeline = createTimeline(log, clock)
  opened.defer(timeline.close)
  /** Always the present ones: a reload replaces what it holds. */
  const settings = await deriveSettings(config)
  const metrics = createMetrics({ version: VERSION, node: versions.node }, clock)
  const memory = openMemory(config, { clock, log, metrics, ownsProcess: collectGarbage !== undefined })
  opened.defer(memory.close)
  const exchanges = createLiveExchanges()
  const live: LiveExchanges = {
    ...exchanges,
    cut(grants) {
      memory.account.grantsEnded(new Set(grants))
      exchanges.cut(grants)
    },
  }
  const onBug = (error: unknown): void =>
    log.error({ err: error }, 'internal error: this is a bug in Postern')
  const uploadTimeout = (): number => settings.config.listen.bodyTimeout
  const parts = { clock, log, metrics, settings, uploadTimeout, onBug }
  const services = await openDeviceServices(config, parts, opened)
  const warnOf = createConfigWarnings(log, onBug)
  const { state, tables, places } = await openState(config, {
    clock,
    log,
    metrics,
    signIn: services.signIn,
    live,
    onPasswordRead: () => void warnOf(settings.config),
    hasName: (name) => settings.gate.scopes?.has(name) ?? name === '',
    hashMemory: memory.hashes,
    onBug,
  })
  opened.defer(state.close)
  if (places !== undefined) await services.join(places)
  const certificate = await openCertificate(config.listen.tls, config.stateDir, {
    clock,
    log,
    metrics,
    machine,
    compareEvery,
  })
  opened.defer(certificate.close)
  await warnOf(config)

  const accessLog = createAccessLog(log, clock)
  opened.defer(accessLog.close)
  const requests = createRecentRequests(clock)
  metrics.setScrapeSources({
    tokens: () => state.tokens.counts(),
    unsaved: state.unsaved,
    windows: (type) => tables[type].size,
    memory: memory.account,
    upstream: services.load,
  })

  const { credentials, ...own } = tokenServices(state, { metrics, clock, live }, settings)
  const passage = createPassage({
    admit: createGate({
      clock,
      tables,
      ...credentials,
      settings,
    }),
    ...own,
    upstream: services.upstream,
    live,
    clock,
    settings,
    onBug,
    record(exchange) {
      metrics.exchange(exchange)
      requests.add(exchange)
      if (settings.config.log.access) accessLog.write(exchange)
    },
    onUnrecordedRefusal: metrics.refused,
  })

  const listener = createPublicListener({
    clock,
    limits: config.listen,
    tls: certificate.material,
    onExchange: passage.request,
    onUpgrade: passage.request,
    refusalMessage: passage.refusalMessage,
    onBug,
    onReached: certificate.reachedAt,
    memory: {
      account: memory.account,
      clientOf: (peer, forwardedFor) => settings.clientOf(peer, forwardedFor),
    },
    events: { ...metrics.connections, refused: refusedConnections(metrics, accessLog, settings) },
  })
  certificate.serve(listener.applyTls)
  let phase: 'starting' | 'running' | 'stopping' = 'starting'
  const readiness = (): Readiness => {
    const reasons = phase === 'running' ? [...services.unreadyReasons(), ...state.troubles()] : [phase]
    return reasons.length === 0 ? { ready: true } : { ready: false, reasons }
  }
  const current = (): Config => settings.config
  const common = { clock, machine, metrics, readiness, current }
  const shown = { memory, timeline, services, state, tables, certificate, node: versions.node }
  const overview = openOverview({ ...common, ...shown })
  opened.defer(overview.close)
  const admin = await openAdmin(config, {
    ...common,
    overview,
    requests,
    tokens: state.tokens,
    log,
    onBug,
    hashMemory: memory.hashes,
  })
  memory.watchPage(admin.unread)
  opened.defer(admin.close)
  const collection = collectWhenIdle({
    collect: collectGarbage,
    privateSize: privateMemory,
    mayGrow: memory.nothingToShed,
    floodIsOver: memory.floodIsOver,
  })
  const listeners = createListeners(config, {
    public: listener.server,
    admin: admin.server,
    onOpen(addresses) {
      phase = 'running'
      log.info({ ...addresses, upstream: config.upstream.url.origin, version: VERSION }, 'listening')
      log.info({ limit: memory.plan.limit, plan: describePlan(memory.plan) }, 'memory for clients')
    },
  })
  const control = await openControlSocket(config.stateDir, {
    tokens: state.tokens,
    sharesTokens: state.storeUp() !== undefined,
    requests,
    alarms: () => overview.condition().alarms,
    places: services.places,
    quirks: services.quirks,
    retry: services.retry,
    clock,
    inFlight: live.granted,
    listening: () => listeners.listening,
    onFailure: (error, what) => log.error({ err: error }, `control socket: ${what}`),
  })

  let lastReload = Promise.resolve()
  function refuseIfStopping(): void {
    if (phase === 'stopping') throw new SidecarStopped()
  }
  /** First everything that can fail, then the change itself in one step, so a failed reload changes nothing. */
  async function apply(next: Config): Promise<Changes> {
    const nextSettings = await deriveSettings(next, config)
    refuseIfStopping()
    const applyTls = await services.renewTls(next.upstream)
    await certificate.reload(next.listen.tls)
    refuseIfStopping()
    const changes = {
      live: changesBetween(settings.config, next).live,
      // Compared with the configuration at the start, which stays in effect for these keys.
      restart: changesBetween(config, next).restart,
    }
    const names = [...(settings.gate.scopes?.keys() ?? [])]
    Object.assign(settings, nextSettings)
    services.applySettings(settings)
    applyTls()
    admin.closeDenied()
    log.level = next.log.level
    await applyToState(settings, names, { state, tables, live, log, sessions: credentials.sessions })
    await warnOf(next)
    await warnOfNextStart(next, log).catch(onBug)
    return changes
  }

  return {
    start: listeners.open,
    overview,

    reload(load) {
      const reloaded = lastReload.then(() => apply(load()))
      lastReload = reloaded.then(
        () => metrics.configReloaded('success'),
        () => metrics.configReloaded('failure'),
      )
      return reloaded
    },

    async stop(graceMs = settings.config.shutdownGrace) {
      phase = 'stopping'
      admin.endStreams()
      await listeners.endOpening()
      collection.close()
      await certificate.close()
      const drained = listener.drain()
      // Requests in flight need the session at the device. Those that last keep it for most of the grace.
      const signedOut = waitAtMost(graceMs * 0.8, drained).then(services.signOut)
      await waitAtMost(graceMs, Promise.all([drained, signedOut]))
      listener.destroy()
      memory.close()
      await services.close()
      await control.close()
      await state.close()
      accessLog.close()
      overview.close()
      timeline.close()
      admin.close()
      releaseFolder()
      log.info('stopped')
    },
  }
}
