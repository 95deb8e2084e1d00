import { limitsOf } from '../config/policy-fields.ts'
import type { Config } from '../config/schema.ts'
import type { LimitDecision, WindowType } from '../http/admission.ts'
import type { UsedUpWindow } from '../limits/window-table.ts'
import {
  createWindowTable,
  decide,
  isSamePolicy,
  type LocalWindows,
  type WindowPolicy,
  type WindowTable,
} from '../limits/window-table.ts'
import type { Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import type { Clock } from '../system/clock.ts'
import { type CountAnswer, createCountBatches } from './count.ts'
import { closesIn, createKnownWindows, type KnownWindow } from './known-windows.ts'
import { type SharedStore, StoreUnavailable } from './shared-store.ts'

export type LimitsConfig = Pick<Config, 'limits' | 'browser'>

export interface LimitTablesDependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'rateFallback'>
}

/** Creates shared windows. The log says when they fall back to local ones, and when they are back. */
export function createSharedTables(
  config: LimitsConfig,
  store: SharedStore,
  { clock, log, metrics }: LimitTablesDependencies,
): Readonly<Record<WindowType, WindowTable>> {
  const { maxKeys } = config.limits
  const limits = limitsOf(config)
  /** When a request was last counted alone; undefined while the windows are shared. */
  let fellBackAt: number | undefined

  function onFallback(endpoint: WindowType, error?: unknown): void {
    metrics.rateFallback(endpoint)
    if (fellBackAt === undefined) log.warn(causeOf(error), 'rate limits: each sidecar counts alone')
    fellBackAt = clock.monotonic()
  }

  function onAnswer(askedAt: number): void {
    if (fellBackAt === undefined || askedAt < fellBackAt) return
    fellBackAt = undefined
    log.info('rate limits: the sidecars share their windows again')
  }

  const table = (endpoint: WindowType): WindowTable =>
    createSharedWindows(limits[endpoint], { store, endpoint, clock, maxKeys, onFallback, onAnswer })
  return { api: table('api'), oauth: table('oauth'), browser: table('browser') }
}

/** What the log says of the reason. Only an error that is not the store's has a stack worth reading. */
function causeOf(error: unknown): object {
  if (error === undefined) return { reason: 'the shared store does not respond' }
  if (error instanceof StoreUnavailable) return { failure: error.failure, reason: error.message }
  return { err: error }
}

export interface SharedWindowsOptions {
  readonly store: Pick<SharedStore, 'prefix' | 'run' | 'up'>
  readonly endpoint: WindowType
  readonly clock: Clock
  readonly maxKeys: number
  /** The store did not answer, so a request was counted by this sidecar alone. No error: the store was known to be down. */
  readonly onFallback: (endpoint: WindowType, error?: unknown) => void
  /** @param askedAt when the question was sent (ms on the monotonic clock) */
  readonly onAnswer: (askedAt: number) => void
}

/**
 * Windows on the server: exactly `policy.requests` pass per window through all sidecars together, by the server's clock (H138). A
 * window that is used up is remembered until it closes, so its further requests are refused without a question (H140). If the
 * store does not answer, the request counts in a table of this process (H139): `count` never rejects, and nothing is unlimited.
 *
 * The name of a window contains the policy, so sidecars with different limits do not mix.
 */
export function createSharedWindows(policy: WindowPolicy, options: SharedWindowsOptions): WindowTable {
  let present = windowsOf(policy, options)

  return {
    count: (key) => present.count(key),
    get size() {
      return present.size
    },
    usedUp: () => present.usedUp(),
    applyPolicy(next) {
      if (isSamePolicy(next, policy)) return
      policy = next
      present = windowsOf(next, options)
    },
  }
}

type WindowsOfPolicy = Omit<WindowTable, 'applyPolicy'>

/** The windows of one policy. A request that waits for the server during a reload is decided by the policy at its arrival. */
function windowsOf(policy: WindowPolicy, options: SharedWindowsOptions): WindowsOfPolicy {
  const { store, endpoint, clock, maxKeys, onFallback, onAnswer } = options
  const prefix = `${store.prefix}w:${endpoint}:${policy.requests}:${policy.window}:`
  const known = createKnownWindows(policy, maxKeys)
  const ask = createCountBatches(policy, { store, clock })
  const askWhenFull = createCountBatches(policy, { store, clock }, `${prefix}overflow`)
  let local: LocalWindows | undefined
  let localUntil = 0

  function countLocally(key: string, error?: unknown): LimitDecision {
    local ??= createWindowTable(policy, { clock, maxKeys })
    localUntil = clock.monotonic() + policy.window
    onFallback(endpoint, error)
    return local.count(key)
  }

  function decisionOf({ before, left, overflowed, askedAt, answeredAt }: CountAnswer): LimitDecision {
    if (local !== undefined && answeredAt >= localUntil) local = undefined
    onAnswer(askedAt)
    return { ...decide(policy, before, closesIn(left, policy)), shared: true, overflow: overflowed }
  }

  async function countIn(window: KnownWindow, key: string): Promise<LimitDecision> {
    try {
      const answer = await ask(prefix + key)
      known.learn(window, answer, key)
      return decisionOf(answer)
    } catch (error) {
      known.miss(window, clock.monotonic())
      return countLocally(key, error)
    }
  }

  /** A key that another sidecar has opened a window for continues there. It takes no memory here. */
  async function countWhenFull(key: string): Promise<LimitDecision> {
    try {
      const answer = await askWhenFull(prefix + key)
      if (answer.overflowed) known.learn(known.overflow, answer)
      return decisionOf(answer)
    } catch (error) {
      return countLocally(key, error)
    }
  }

  return {
    count(key) {
      const now = clock.monotonic()
      const found = known.find(key, now)
      const overflow = found === 'overflow'
      const window = overflow ? known.overflow : found === 'new' ? undefined : found
      if (window?.usedUp && now < window.closesAt) {
        window.refused += 1
        return { ...decide(policy, policy.requests, window.closesBy - now), shared: true, overflow }
      }
      if (!store.up) return countLocally(key)
      return overflow ? countWhenFull(key) : countIn(window ?? known.add(key), key)
    },
    get size() {
      return known.size + (local?.size ?? 0)
    },
    usedUp: () => merged([...(local?.usedUp() ?? []), ...known.usedUp(clock.monotonic())]),
  }
}

/** One window for each key: it closes as the last of that key, and has refused the requests of all of them. */
function merged(windows: readonly UsedUpWindow[]): readonly UsedUpWindow[] {
  const byKey = new Map<string, UsedUpWindow>()
  for (const { key, closesAt, refused } of windows) {
    const known = byKey.get(key)
    byKey.set(key, {
      key,
      closesAt: Math.max(closesAt, known?.closesAt ?? 0),
      refused: refused + (known?.refused ?? 0),
    })
  }
  return [...byKey.values()]
}
