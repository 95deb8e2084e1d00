import { randomUUID } from 'node:crypto'
import type { Readiness } from '../admin/admin-listener.ts'
import { kindOfPassword } from '../config/password-fields.ts'
import { limitsOf } from '../config/policy-fields.ts'
import type { Config } from '../config/schema.ts'
import type { Endpoint, WindowType } from '../http/admission.ts'
import type { ServedCertificate } from '../listen/served-certificate.ts'
import type { LoginHistory } from '../oauth/login-history.ts'
import type { Facts } from '../overview/alarm.ts'
import { createAlarmLog } from '../overview/alarm-log.ts'
import { alarmsOf } from '../overview/alarms.ts'
import { createGrantSearch } from '../overview/grant-search.ts'
import { createHistory, sumsSinceStart } from '../overview/history.ts'
import type { About, Condition, LimitCondition, RefusedReload } from '../overview/model.ts'
import { createGrantRows, limitCondition, type Overview } from '../overview/overview.ts'
import type { Timeline } from '../overview/timeline.ts'
import type { Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import { type Clock, createWallOffset } from '../system/clock.ts'
import type { MachineNames } from '../system/machine-names.ts'
import { unreplaced } from '../tokens/handout.ts'
import { VERSION } from '../version.ts'
import type { Memory } from './client-memory.ts'
import type { DeviceServices } from './device-services.ts'
import type { LimitTables, State } from './open-state.ts'

interface Sources extends Pick<About, 'node'> {
  readonly clock: Clock
  readonly log: Logger
  readonly machine: () => MachineNames
  readonly metrics: Pick<Metrics, 'totals' | 'wouldRefuse'>
  readonly timeline: Pick<Timeline, 'entries'>
  readonly current: () => Config
  readonly services: Pick<DeviceServices, 'load' | 'bounds' | 'conditions'>
  readonly state: Pick<
    State,
    'tokens' | 'issued' | 'unsaved' | 'setAsideAt' | 'copiedAt' | 'password' | 'store'
  >
  readonly tables: LimitTables
  readonly history: Pick<LoginHistory, 'guesses'>
  readonly certificate: Pick<ServedCertificate, 'present'>
  readonly reloads: { readonly refused: () => RefusedReload | null }
  readonly readiness: () => Readiness
  readonly memory: Pick<Memory, 'condition'>
}

/** Where the password is checked, as the live page shows it. */
const SOURCES = { device: 'device', socket: 'hook', functions: 'hook', names: 'file', file: 'file' } as const

/** Collects the facts that the admin listener shows from all parts of the sidecar. Records the history, and logs alarms, until its disposal. */
export function openOverview(sources: Sources): Overview & Disposable {
  const { clock, metrics, timeline, current, services, state, tables, certificate } = sources
  const history = createHistory({ clock, totals: metrics.totals, load: services.load })
  const wallOffset = createWallOffset(clock)

  function facts(): Facts {
    const readiness = sources.readiness()
    const config = current()
    const { enforce, tokens, passwords = [] } = config
    const limits = limitsOf(config)
    const { inFlight, limit, queued } = services.load()
    const source = state.password.state()
    const ahead = wallOffset()
    const totals = metrics.totals()
    const shown = (type: WindowType): LimitCondition =>
      limitCondition({ ...limits[type], names: namedLimits(type, config) }, tables[type].usedUp(), ahead)
    return {
      ready: readiness.ready,
      reasons: readiness.ready ? [] : readiness.reasons,
      enforce,
      trials: passwords.flatMap(({ name, enforce: holds }) =>
        holds ? [] : [{ name, wouldRefuse: metrics.wouldRefuse(name) }],
      ),
      totals: sumsSinceStart(totals),
      services: services.conditions(),
      load: { inFlight, maxInFlight: limit, queued, tunnels: totals.tunnels, ...services.bounds() },
      memory: sources.memory.condition(),
      limits: { api: shown('api'), oauth: shown('oauth'), ...furtherLimits(config, shown) },
      tokens: {
        ...state.tokens.counts(),
        capacity: tokens.capacity,
        unsaved: state.unsaved?.() ?? null,
        setAsideAt: state.setAsideAt?.() ?? null,
        copiedAt: state.copiedAt?.() ?? null,
        unreplaced: unreplaced(state.issued()).map(({ id, label, expiresAt }) => ({ id, label, expiresAt })),
      },
      certificate: certificate.present() ?? null,
      password: {
        source: SOURCES[kindOfPassword(config)],
        changedAt: source.changedAt ?? null,
        problem: source.readable ? null : (source.reason ?? 'it cannot be used'),
        absent: source.absent ?? null,
      },
      wrongPasswords: sources.history.guesses(),
      store: state.store?.() ?? null,
      refusedReload: sources.reloads.refused(),
    }
  }

  function condition(): Condition {
    const present = facts()
    return { alarms: alarmsOf(present, history.points(0), clock.wall()), ...present }
  }

  history.onPoint(createAlarmLog({ clock, log: sources.log, alarms: () => condition().alarms }))

  return {
    about: {
      run: randomUUID(),
      version: VERSION,
      node: sources.node,
      // Read only when the page asks: a sidecar with the operator's certificate has no other use for the names.
      get machine() {
        return sources.machine().names[0] ?? ''
      },
      startedAt: clock.wall(),
    },
    points: history.points,
    onPoint: history.onPoint,
    condition,
    timeline: timeline.entries,
    grants: createGrantRows(state.tokens, clock),
    findGrants: createGrantSearch(state.tokens, clock),
    [Symbol.dispose]: history.close,
  }
}

/** The limits of names, which are limits of the API. */
function namedLimits(type: WindowType, { passwords = [] }: Config): LimitCondition['names'] {
  if (type !== 'api') return []
  return passwords.flatMap(({ name, limit }) => (limit === undefined ? [] : { name, ...limit }))
}

/** The limits that the configuration switches on. The type demands a line here for each new window. */
function furtherLimits(
  { browser }: Config,
  shown: (type: WindowType) => LimitCondition,
): Partial<Record<WindowType, LimitCondition>> {
  const isOn: Readonly<Record<Exclude<WindowType, Endpoint>, boolean>> = { browser: browser.login !== 'off' }
  // Proof of the cast: these are the keys of the record.
  const types = Object.keys(isOn) as (keyof typeof isOn)[]
  return Object.fromEntries(types.filter((type) => isOn[type]).map((type) => [type, shown(type)]))
}
