import { limitsOf } from '../config/policy-fields.ts'
import type { Config } from '../config/schema.ts'
import type { LimitDecision, WindowType } from '../http/admission.ts'
import { createOwnWindows } from '../limits/own-windows.ts'
import {
  createUsedUpWindows,
  createWindowTable,
  decide,
  isSamePolicy,
  Listed,
  type LocalWindows,
  OVERFLOW,
  type UsedUpWindow,
  WindowList,
  type WindowPolicy,
  type WindowTable,
} from '../limits/window-table.ts'
import type { Clock } from '../system/clock.ts'
import type { Outlets } from '../tokens/state-events.ts'
import { type CountAnswer, createCountBatches } from './count.ts'
import { type SharedStore, StoreUnavailable } from './shared-store.ts'

/** How often the log says that the store loses windows (ms). */
const REPEAT = 60_000

/** Creates shared windows. Logs when they fall back to local ones, when they are shared again, and when the store has lost some. */
export function createSharedTables(
  config: Pick<Config, 'limits' | 'browser' | 'passwords'>,
  store: SharedStore,
  { clock, log, metrics }: Outlets & { readonly clock: Clock },
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

  let saidAt = Number.NEGATIVE_INFINITY

  function onLost(): void {
    metrics.storeFailed('shared', 'lost')
    if (clock.monotonic() - saidAt < REPEAT) return
    saidAt = clock.monotonic()
    log.error(
      'rate limits: the shared store has lost windows that were open; this sidecar adds what it knows',
    )
  }

  const shared = { store, clock, maxKeys, onFallback, onAnswer, onLost }
  const table = (endpoint: WindowType): WindowTable =>
    createOwnWindows(limits[endpoint], (policy) => createSharedWindows(policy, { ...shared, endpoint }))
  return { api: table('api'), oauth: table('oauth'), browser: table('browser') }
}

/** The fields for the log. Only an error that is not `StoreUnavailable` is a bug, whose stack is worth reading. */
function causeOf(error: unknown): object {
  if (error === undefined) return { reason: 'the shared store does not respond' }
  if (error instanceof StoreUnavailable) return { failure: error.failure, reason: error.message }
  return { err: error }
}

interface Options {
  readonly store: Pick<SharedStore, 'prefix' | 'run' | 'up'>
  readonly endpoint: WindowType
  readonly clock: Clock
  readonly maxKeys: number
  /** The store did not answer, so this sidecar counted a request alone. `error`: undefined if the store was known to be down. */
  readonly onFallback: (endpoint: WindowType, error?: unknown) => void
  /** @param askedAt when the question was sent (ms on the monotonic clock) */
  readonly onAnswer: (askedAt: number) => void
  /** The server has lost a window that was open: another program evicts or deletes its keys, or its clock was set ahead. */
  readonly onLost: () => void
}

/**
 * Windows on the server: exactly `policy.requests` pass per window through all sidecars together, by the server's clock (H138). A
 * used-up window is remembered until it closes, so its further requests are refused without a question (H140). If the store does not
 * answer, the request counts in a table of this process (H139): `count` never rejects, and no request is unlimited. If the server loses
 * an open window, the requests that this sidecar knows of count until the window would have closed (H276).
 *
 * The name of a window contains the policy, so sidecars with different limits do not mix.
 */
export function createSharedWindows(policy: WindowPolicy, given: Options): WindowTable {
  const options = { ...given }
  let present = windowsOf(policy, options)

  return {
    count: (key, now) => present.count(key, now),
    get size() {
      return present.size
    },
    usedUp: () => present.usedUp(),
    applyPolicy(next, maxKeys = options.maxKeys) {
      options.maxKeys = maxKeys
      if (isSamePolicy(next, policy)) return
      policy = next
      present = windowsOf(next, options)
    },
  }
}

/**
 * The windows of one policy. If a request waits for the server during a reload, the policy at its arrival decides.
 *
 * A sidecar opens at most `maxKeys` windows on the server. A window stands behind all others when it opens or is renewed, so the
 * first in the list close first, at most one window length later. (A window that another sidecar opened closes sooner.)
 */
function windowsOf(policy: WindowPolicy, options: Options): Omit<WindowTable, 'applyPolicy'> {
  const { store, endpoint, clock, onFallback, onAnswer, onLost } = options
  const prefix = `${store.prefix}w:${endpoint}:${policy.requests}:${policy.window}:`
  const ask = createCountBatches(policy, { store, clock })
  const askWhenFull = createCountBatches(policy, { store, clock }, `${prefix}overflow`)
  const windows = new WindowList(() => new KnownWindow())
  const usedUp = createUsedUpWindows<KnownWindow>(({ closesBy }) => closesBy)
  let local: LocalWindows | undefined
  let localUntil = 0

  function countLocally(key: string, error?: unknown): LimitDecision {
    local ??= createWindowTable(policy, { clock, maxKeys: options.maxKeys })
    localUntil = clock.monotonic() + policy.window
    onFallback(endpoint, error)
    return local.count(key)
  }

  /**
   * @param window of the key; the overflow window while the table is full. A key with a window that another sidecar has opened then still
   * counts in that window, without memory here
   */
  async function countOnServer(key: string, window: KnownWindow): Promise<LimitDecision> {
    const isFull = window === windows.overflow
    try {
      const answer = await (isFull ? askWhenFull : ask)(prefix + key)
      const counted = isFull && !answer.overflowed ? undefined : window
      if (counted !== undefined) learn(counted, answer, isFull ? OVERFLOW : key)
      if (answer.answeredAt >= localUntil) local = undefined
      onAnswer(answer.askedAt)
      const decision = counted?.isCarrying(answer.answeredAt)
        ? decide(policy, counted.lost + answer.before, counted.lostUntil - answer.answeredAt)
        : decide(policy, answer.before, atMost(policy, answer.left + ROUNDED))
      return { ...decision, shared: true, overflow: answer.overflowed }
    } catch (error) {
      // The server may have opened the window, though it did not answer.
      if (window.closesAt === Infinity) window.closesAt = window.closesBy = clock.monotonic() + policy.window
      return countLocally(key, error)
    }
  }

  /** Updates a window by the server's answer to a request in it. */
  function learn(window: KnownWindow, { before, left, askedAt, answeredAt }: CountAnswer, key: string): void {
    const closesAt = askedAt + left
    // The answer is about another window: the known one closed before the server counted, or the server has lost it.
    if (closesAt > window.closesBy) {
      if (before < window.count && answeredAt < window.closesAt - policy.window / DRIFT) {
        window.carry(answeredAt)
        onLost()
      }
      window.usedUp = false
      window.refused = 0
      windows.renew(window, closesAt)
    }
    window.closesAt = closesAt
    window.closesBy = answeredAt + left + ROUNDED
    window.count = before + 1
    const wasUsedUp = window.usedUp
    const all = before + (window.isCarrying(answeredAt) ? window.lost : 0)
    window.usedUp = all + 1 >= policy.requests
    // Used up only because of the requests in the lost window: it admits more when that one would have closed.
    if (window.usedUp && before + 1 < policy.requests) window.closesAt = window.closesBy = window.lostUntil
    if (all >= policy.requests) window.refused += 1
    if (window.usedUp && !wasUsedUp) usedUp.note(key, window)
  }

  return {
    count(key, now = clock.monotonic()) {
      const known = windows.find(key, now, options.maxKeys)
      if (known?.usedUp && now < known.closesAt) {
        known.refused += 1
        const left = atMost(policy, known.closesBy - now)
        const overflow = known === windows.overflow
        return { ...decide(policy, policy.requests, left), shared: true, overflow }
      }
      if (!store.up) return countLocally(key)
      // A new one takes its place before the server is asked about it.
      return countOnServer(key, known ?? windows.open(key, now))
    },
    get size() {
      return windows.size + (local?.size ?? 0)
    },
    usedUp: () => merged([...(local?.usedUp() ?? []), ...usedUp.stillOpen(clock.monotonic())]),
  }
}

/** Merges the windows of each key: the last time of closing, and the sum of refused requests. */
function merged(windows: readonly UsedUpWindow[]): readonly UsedUpWindow[] {
  return [...Map.groupBy(windows, ({ key }) => key)].map(([key, same]) => ({
    key,
    closesAt: Math.max(...same.map(({ closesAt }) => closesAt)),
    refused: same.reduce((sum, { refused }) => sum + refused, 0),
  }))
}

/** A window on the server as this sidecar knows it. Times are on its monotonic clock (ms). Until the server answers, it counts as open. */
class KnownWindow extends Listed {
  /** The earliest time of closing: the time left, counted from when the question was sent. */
  closesAt = Infinity
  /** The latest time of closing: the time left, counted from the answer, and `ROUNDED`. */
  closesBy = Infinity
  usedUp = false
  /** Requests of this sidecar past the limit. */
  refused = 0
  /** The requests in the window, by the last answer of the server. */
  count = 0
  /** The requests in earlier windows that the server lost while they were open, and when the first of those would have closed. */
  lost = 0
  lostUntil = 0

  isCarrying(now: number): boolean {
    return now < this.lostUntil
  }

  /** The server has lost this window, and begins a new one: carries the requests of the lost one over. */
  carry(now: number): void {
    if (!this.isCarrying(now)) {
      this.lost = 0
      this.lostUntil = this.closesAt
    }
    this.lost += this.count
  }
}

/** A new window that opens earlier than by this part of a length shows that the old one was lost. The margin is for a slewed clock. */
const DRIFT = 100

/**
 * The server counts in whole ms: it rounds the time left down, and a window lives until the end of its last ms. So a window closes at most
 * this much (ms) later than the server says.
 */
const ROUNDED = 1

/** The time until a window closes (ms), as a client is told: no longer than the length of a window. */
function atMost({ window }: WindowPolicy, left: number): number {
  return Math.min(left, window)
}
