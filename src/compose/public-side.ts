import type { Server } from 'node:net'
import type { Config } from '../config/schema.ts'
import { createGate } from '../gate/admit.ts'
import type { LiveExchanges } from '../gate/live-exchanges.ts'
import { createPassage } from '../gate/passage.ts'
import { createRedirect } from '../gate/redirect.ts'
import { createPublicListener } from '../listen/public-listener.ts'
import type { ServedCertificate } from '../listen/served-certificate.ts'
import type { LoginHistory } from '../oauth/login-history.ts'
import { createAccessLog, refusedConnections } from '../record/access-log.ts'
import type { LogDestination, Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import { createRecentRequests } from '../record/recent-requests.ts'
import type { Clock } from '../system/clock.ts'
import { everySecond } from '../system/every-second.ts'
import { listenBounds } from './bounds.ts'
import type { Memory } from './client-memory.ts'
import { boundConnections } from './descriptors.ts'
import type { DeviceServices } from './device-services.ts'
import { type LimitTables, type State, tokenServices } from './open-state.ts'
import type { Settings } from './settings.ts'

interface Parts {
  readonly clock: Clock
  readonly log: Logger
  readonly destination: LogDestination
  readonly metrics: Metrics
  readonly settings: Settings
  readonly memory: Pick<Memory, 'account'>
  readonly live: LiveExchanges
  readonly history: LoginHistory
  readonly state: State
  readonly tables: LimitTables
  readonly services: Pick<DeviceServices, 'upstream'>
  readonly certificate: ServedCertificate
  readonly onBug: (error: unknown) => void
}

/** Opens the side of the sidecar that clients reach: the public listener, the gate behind it, and the record of each exchange. */
export function openPublicSide(config: Config, parts: Parts) {
  const {
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
  } = parts
  const limitsOf = (from: Config) => ({
    ...listenBounds(settings.bounds),
    ...from.listen,
    maxConnections: boundConnections(from, log),
  })
  const accessLog = createAccessLog({ log, destination }, clock, settings)
  const requests = createRecentRequests(state.issued)
  const { credentials, ownEndpoints, loginPageFor } = tokenServices(
    state,
    { metrics, clock, live, history },
    settings,
  )
  const redirect = createRedirect(
    { names: () => certificate.material?.names ?? [], port: () => portOf(listener.server) },
    settings,
  )
  const passage = createPassage({
    admit: createGate({ clock, tables, ...credentials, settings }),
    ownEndpoints: { ...ownEndpoints, redirect },
    loginPageFor,
    device: services,
    live,
    clock,
    settings,
    onBug,
    records: [metrics.exchange, requests.add, accessLog.write],
    onUnrecordedRefusal: metrics.refused,
  })
  const listener = createPublicListener({
    clock,
    limits: limitsOf(config),
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
    events: { ...metrics.connections, refused: refusedConnections(metrics, accessLog) },
  })
  certificate.serve(listener.applyTls)
  const sweeping = everySecond(clock, credentials.sessions.sweep)
  /** Puts the caps and deadlines of another configuration into effect. */
  const applyLimits = (next: Config): void => listener.applyLimits(limitsOf(next))
  return {
    listener,
    applyLimits,
    endRequests: passage.stop,
    requests,
    sessions: credentials.sessions,
    [Symbol.dispose]() {
      listener.cut()
      sweeping.close()
      accessLog.close()
    },
  }
}

/** The port of a server; undefined until it listens, and on a Unix socket. */
function portOf(server: Server): number | undefined {
  const address = server.address()
  return typeof address === 'string' ? undefined : address?.port
}
