import { versions } from 'node:process'
import { createAdminListener, type Readiness } from './admin/admin-listener.ts'
import type { Config } from './config/config.ts'
import { type Admit, createGate } from './gate/admit.ts'
import { createClientAddress } from './gate/client-address.ts'
import { createLiveExchanges } from './gate/live-exchanges.ts'
import { createPassage } from './gate/passage.ts'
import { createBoundedQueue } from './http/bounded-queue.ts'
import type { Clock } from './http/clock.ts'
import { parseCidr } from './http/ip.ts'
import { IETF_FIELD_NAMES, LIMIT_FIELD_NAMES } from './limits/limit-fields.ts'
import { createWindowTable } from './limits/window-table.ts'
import { listen } from './listen/listen.ts'
import { createPublicListener } from './listen/public-listener.ts'
import { loadTlsMaterial } from './listen/tls-material.ts'
import { createPasswordGrant } from './oauth/password-grant.ts'
import { createRefreshGrant } from './oauth/refresh-grant.ts'
import { createTokenEndpoint } from './oauth/token-endpoint.ts'
import { createAccessLog } from './record/access-log.ts'
import type { Logger } from './record/log.ts'
import { createMetrics } from './record/metrics.ts'
import { openState } from './state.ts'
import { readAddedFields } from './upstream/added-fields.ts'
import { createConnections } from './upstream/connections.ts'
import { startHealthCheck } from './upstream/health.ts'
import { upstreamDeadlines, upstreamHost, upstreamTarget } from './upstream/settings.ts'
import { createUpgradeLane } from './upstream/upgrade-lane.ts'
import { createUpstream } from './upstream/upstream.ts'
import { VERSION } from './version.ts'

export interface Sidecar {
  /** Starts taking requests. Fails with what keeps it from listening. */
  start(): Promise<Addresses>
  /** Lets what runs finish within `graceMs` (by default `shutdown_grace`), then ends the rest. */
  stop(graceMs?: number): Promise<void>
}

export interface Addresses {
  /** The URL of the public listener. */
  readonly public: string
  readonly admin: string | null
}

export interface SidecarDependencies {
  readonly clock: Clock
  readonly log: Logger
}

/** Puts the house together: a configuration becomes a sidecar that is ready to start. */
export async function createSidecar(config: Config, { clock, log }: SidecarDependencies): Promise<Sidecar> {
  const metrics = createMetrics({ version: VERSION, node: versions.node })
  const live = createLiveExchanges()
  const onBug = (error: unknown): void => log.error({ err: error }, 'this should not have happened')

  const target = await upstreamTarget(config.upstream)
  const deadlines = upstreamDeadlines(config.upstream)
  const added = await readAddedFields(config.upstream.headers)
  const tls = await loadTlsMaterial(config.listen.tls, config.stateDir)
  const state = await openState(config, { clock, log, metrics, onRevoked: live.cut })

  const tables = {
    api: createWindowTable(config.limits.api, { clock, maxKeys: config.limits.maxKeys }),
    oauth: createWindowTable(config.limits.oauth, { clock, maxKeys: config.limits.maxKeys }),
  }
  const connections = createConnections(target, deadlines)
  const guard = createBoundedQueue({
    inside: config.upstream.maxInFlight,
    waiting: config.upstream.queue.size,
    patience: config.upstream.queue.timeout,
  })
  const accessLog = createAccessLog(log, clock)
  metrics.observe({
    tokens: () => state.tokens.counts(),
    windows: () => ({ api: tables.api.size, oauth: tables.oauth.size }),
    upstream: () => ({ inFlight: guard.inside, queued: guard.waiting }),
  })

  const passage = createPassage({
    admit: gateOf(config, { clock, tables, identify: state.tokens.identify }),
    tokenEndpoint: createTokenEndpoint({
      bodyTimeout: () => config.listen.bodyTimeout,
      grants: new Map([
        [
          'password',
          createPasswordGrant({
            verify: state.password.verify,
            issue: state.tokens.issue,
            onWrongPassword: metrics.passwordFailed,
          }),
        ],
        ['refresh_token', createRefreshGrant(state.tokens.refresh)],
      ]),
    }),
    upstream: createUpstream({
      connections,
      upgrades: createUpgradeLane(target, deadlines),
      guard,
      clock,
      stallTimeout: config.upstream.idleTimeout,
      request: () => ({ host: upstreamHost(config.upstream), added }),
      response: { origin: target.origin, replaced: replacedFields(config) },
      events: {
        answered: metrics.upstreamAnswered,
        failed: metrics.upstreamFailed,
        tunnel: metrics.tunnel,
      },
    }),
    live,
    clock,
    answers: () => config,
    onBug,
    record({ exchange, endpoint, client, refusal, outcome, duration }) {
      metrics.exchange(endpoint, exchange.head.method, outcome, duration)
      if (refusal?.kind === 'rate-limited') metrics.rateLimited(endpoint)
      if (refusal?.kind === 'unauthorized') metrics.authFailed(refusal.cause)
      if (config.log.access)
        accessLog.write({ head: exchange.head, endpoint, client, refusal, outcome, duration })
    },
  })

  const listener = createPublicListener({
    limits: config.listen,
    tls,
    onExchange: passage.request,
    onUpgrade: passage.upgrade,
    answerGarbage: passage.answerGarbage,
    onConnection: metrics.connection,
  })
  let readiness: Readiness = { ready: false, reasons: ['starting'] }
  const admin = createAdminListener({
    metrics: metrics.text,
    metricsType: metrics.contentType,
    readiness: () => readiness,
    onBug,
  })
  const health =
    config.upstream.health.path === null
      ? undefined
      : startHealthCheck(
          { path: config.upstream.health.path, interval: config.upstream.health.interval },
          connections,
          metrics.upstreamUp,
        )

  return {
    async start() {
      const adminAddress = config.admin.address
      const adminAt = adminAddress === 'off' ? null : `http://${await listen(admin, adminAddress)}`
      const scheme = tls === undefined ? 'http' : 'https'
      const publicAt = `${scheme}://${await listen(listener.server, config.listen.address)}`
      readiness = { ready: true }
      log.info({ public: publicAt, admin: adminAt, upstream: target.origin, version: VERSION }, 'listening')
      return { public: publicAt, admin: adminAt }
    },
    async stop(graceMs = config.shutdownGrace) {
      readiness = { ready: false, reasons: ['stopping'] }
      health?.close()
      await within(graceMs, listener.drain())
      listener.destroy()
      await connections.close()
      state.close()
      accessLog.close()
      admin.close()
      admin.closeAllConnections()
      log.info('stopped')
    },
  }
}

function gateOf(
  config: Config,
  parts: Pick<Parameters<typeof createGate>[0], 'clock' | 'tables' | 'identify'>,
): Admit {
  const proxies = config.listen.trustedProxies.map(parseCidr).filter((cidr) => cidr !== undefined)
  const settings = {
    limits: config.limits,
    ietfHeaders: config.limits.ietfHeaders,
    headerCaps: config.listen,
  }
  return createGate({ ...parts, clientOf: createClientAddress(proxies).clientOf, settings: () => settings })
}

function replacedFields({ limits }: Config): ReadonlySet<string> {
  return limits.ietfHeaders ? new Set([...LIMIT_FIELD_NAMES, ...IETF_FIELD_NAMES]) : LIMIT_FIELD_NAMES
}

/** Waits for `work`, but no longer than `time` ms. */
async function within(time: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, time)
  })
  await Promise.race([work, over])
  clearTimeout(timer)
}
