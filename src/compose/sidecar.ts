import { pid, versions } from 'node:process'
import type { Readiness } from '../admin/admin-listener.ts'
import { openControlSocket } from '../admin/control-socket.ts'
import type { Changes } from '../config/changes.ts'
import type { Config } from '../config/schema.ts'
import { atGate } from '../gate/gate-exchange.ts'
import { createLiveExchanges, type LiveExchanges } from '../gate/live-exchanges.ts'
import { type Addresses, createListeners } from '../listen/listeners.ts'
import { openCertificate } from '../listen/served-certificate.ts'
import type { Overview } from '../overview/overview.ts'
import { createTimeline } from '../overview/timeline.ts'
import type { PasswordFunctions } from '../password/hook.ts'
import type { OpenLog } from '../record/log.ts'
import { createMetrics } from '../record/metrics.ts'
import type { Clock } from '../system/clock.ts'
import { type MachineNames, machineNames } from '../system/machine-names.ts'
import { causeOf } from '../system/setup-error.ts'
import { unreplaced } from '../tokens/handout.ts'
import { VERSION } from '../version.ts'
import { openAdmin } from './admin.ts'
import { deviceBounds, type SomeBounds } from './bounds.ts'
import { type Memory, openMemory, planMemory } from './client-memory.ts'
import { createConfigWarnings } from './config-warnings.ts'
import { openDeviceServices } from './device-services.ts'
import { drain, STOP_BOUNDS } from './drain.ts'
import { holdStateFolder } from './held-state-folder.ts'
import { openLoginHistory, revocable } from './open-login-history.ts'
import { openOverview } from './open-overview.ts'
import { openState } from './open-state.ts'
import { openPublicSide } from './public-side.ts'
import { createReload, watchReloads } from './reload.ts'
import { deriveSettings } from './settings.ts'

export interface Sidecar {
  /** Starts the listeners, once. Rejects with the reason if one cannot listen, or if the sidecar is stopped. */
  start(): Promise<Addresses>
  /**
   * Applies the configuration that `load` returns, without closing a connection, and returns the changed keys, including
   * those that take effect only after a restart. Reloads come one after the other, and `load` is called at its turn. Rejects, and
   * changes nothing, if `load` throws, if a file that the configuration names cannot be used, or if the sidecar is stopped. `locate`
   * adds file and line to an error.
   */
  reload(load: () => Config, locate?: (error: unknown) => unknown): Promise<Changes>
  /**
   * Ends a start in progress, then drains: requests in flight may finish within `graceMs` (default: `STOP_BOUNDS.grace`), the rest
   * are aborted.
   */
  stop(graceMs?: number): Promise<void>
  /** Ends the grace of a stop in progress: requests in flight are aborted now. */
  hurry(): void
  /** The facts that the admin listener shows. For tests. */
  readonly overview: Overview
}

/** How often the names of the machine are compared with the certificate (ms). */
const COMPARE_EVERY = 60_000

export interface SidecarDependencies extends OpenLog {
  readonly clock: Clock
  /** The configuration file, if there is one: the log warns if other users can replace it. */
  readonly configFile?: string | undefined
  /** The names and addresses of this machine; default: read from the system. */
  readonly machine?: () => MachineNames
  /** Whether the start waits for an address that this machine does not have yet. Otherwise such an address is an error. */
  readonly waitsForAddresses?: boolean
  /** The functions that check the password, of the program that embeds Postern. */
  readonly verify?: PasswordFunctions | undefined
  /** Bounds in place of the usual ones. For tests. */
  readonly bounds?: SomeBounds | undefined
  /** This process runs only Postern. Absent when Postern is embedded: then the memory of the process is not measured. */
  readonly ownsProcess?: boolean
}

const LATE = 'waiting for an address that this machine does not have yet'

/** Creates all parts of the sidecar and connects them. Rejects with `SetupError` if a configured file cannot be used. */
export async function createSidecar(
  config: Config,
  {
    clock,
    log,
    destination,
    configFile,
    ownsProcess = false,
    machine = machineNames,
    waitsForAddresses,
    verify,
    bounds,
  }: SidecarDependencies,
): Promise<Sidecar> {
  /**
   * What has to be closed, in the order of opening. If a later part cannot be opened, this scope closes it all; otherwise `running` takes it
   * over.
   */
  await using opened = new AsyncDisposableStack()
  opened.defer(holdStateFolder(config.stateDir, pid, clock.wall()))
  const timeline = opened.use(createTimeline(log, clock))
  /** Always the present settings: a reload replaces their values. */
  const settings = await deriveSettings(config, bounds)
  const metrics = createMetrics({ version: VERSION, node: versions.node }, clock)
  const plan = await planMemory(config)
  const memory = opened.use(openMemory(plan, { clock, log, destination, metrics, ownsProcess }))
  const live = tellMemory(createLiveExchanges(), memory)
  const onBug = (error: unknown): void =>
    log.error({ err: error }, 'internal error: this is a bug in Postern')
  const history = openLoginHistory(log, clock, settings, onBug)
  const parts = {
    clock,
    log,
    metrics,
    settings,
    live: { add: atGate(live.add), delete: atGate(live.delete) },
    uploadTimeout: settings.bodyTimeout,
    bounds: deviceBounds(settings.bounds),
    onBug,
  }
  const services = await openDeviceServices(config, parts, opened)
  const warnOf = createConfigWarnings(log, onBug, configFile)
  const { state, tables, places } = await openState(config, {
    clock,
    log,
    metrics,
    signIn: services.signIn,
    verify,
    live,
    onPasswordRead: () => void warnOf(settings.config),
    hasName: (name) => settings.gate.scopes?.has(name) ?? name === '',
    hashMemory: memory.hashes,
    precedence: history,
    storeBounds: bounds?.store,
    onOperatorRevoked: history.revoked,
    onBug,
  })
  opened.defer(state.close)
  const tokens = revocable(state.tokens, history)
  if (places !== undefined) {
    await services.join(places)
    // Runs before the close of `state`, which frees the places in the store: then no request of this sidecar is at the device.
    opened.defer(services.close)
  }
  const serving = { clock, log, metrics, machine, compareEvery: COMPARE_EVERY }
  const certificate = opened.use(await openCertificate(config.listen.tls, config.stateDir, serving))
  await warnOf(config)

  metrics.setScrapeSources({
    tokens: state.tokens.counts,
    issued: () => state.issued().length,
    issuedEnds: () => unreplaced(state.issued())[0]?.expiresAt,
    unsaved: () => state.unsaved?.(),
    guessing: () => history.guesses().addresses,
    windows: (type) => tables[type].size,
    memory: memory.account,
    upstream: services.load,
  })
  const built = {
    clock,
    log,
    destination,
    metrics,
    settings,
    memory,
    live,
    history,
    state,
    tables,
    services,
    certificate,
    onBug,
  }
  const publicSide = opened.use(openPublicSide(config, built))
  const { listener, applyLimits, endRequests, requests, sessions } = publicSide

  let phase: 'starting' | 'running' | 'stopping' = 'starting'
  const readiness = (): Readiness => {
    const reasons =
      phase === 'running' ? [...services.unreadyReasons(), ...(state.troubles?.() ?? [])] : [phase]
    return reasons.length === 0 ? { ready: true } : { ready: false, reasons }
  }
  const current = (): Config => settings.config
  const common = { clock, machine, metrics, readiness, current }
  const reloads = watchReloads(clock, metrics)
  const shown = {
    reloads,
    memory,
    timeline,
    services,
    state,
    tables,
    history,
    certificate,
    node: versions.node,
  }
  const overview = opened.use(openOverview({ ...common, ...shown, log }))
  const hashMemory = memory.hashes
  const admin = opened.use(
    await openAdmin(config, { ...common, overview, requests, tokens, log, onBug, certificate, hashMemory }),
  )
  memory.watchPage(admin.unread)
  const listeners = createListeners(config, {
    clock,
    public: listener.server,
    redirect: listener.redirect,
    admin: admin.server,
    onLate:
      waitsForAddresses === true
        ? ({ key, address }, error) => log.warn({ key, address, ...causeOf(error) }, LATE)
        : undefined,
    onOpen(addresses) {
      const isFirst = phase === 'starting'
      phase = 'running'
      log.info({ ...addresses, upstream: settings.config.upstream.url.origin, version: VERSION }, 'listening')
      if (isFirst) memory.announce()
    },
  })
  const answers = {
    tokens,
    handOut: state.handOut,
    sharesTokens: state.store !== undefined,
    requests,
    alarms: () => overview.condition().alarms,
    places: services.places,
    quirks: services.quirks,
    memory: memory.status,
    clock,
    inFlight: live.granted,
    listening: () => listeners.listening,
    waiting: () => listeners.waiting,
    onFailure: (error: unknown, what: string) => log.error(causeOf(error), `control socket: ${what}`),
  }
  opened.use(await openControlSocket(config.stateDir, answers))

  const isStopping = (): boolean => phase === 'stopping'
  const reload = createReload(config, { ...built, reloads, admin, applyLimits, sessions, isStopping, warnOf })
  // From here on only a stop closes the parts.
  const running = opened.move()
  const hurried = Promise.withResolvers<void>()

  return {
    start: listeners.open,
    reload,
    overview,
    hurry: hurried.resolve,

    /** Drains, then closes all opened parts in reverse order. */
    async stop(graceMs = STOP_BOUNDS.grace) {
      phase = 'stopping'
      const parts = { admin, listeners, listener, services, endRequests }
      await drain(graceMs, { ...parts, clock, hurried: hurried.promise })
      await running.disposeAsync()
      log.info('stopped')
    },
  }
}

/** The exchanges, whose `cut` also tells the account that the grants have ended: they give their clients no precedence any more. */
function tellMemory(exchanges: LiveExchanges, { account }: Memory): LiveExchanges {
  return {
    ...exchanges,
    cut(grants) {
      account.grantsEnded(new Set(grants))
      exchanges.cut(grants)
    },
  }
}
