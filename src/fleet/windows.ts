import type { Endpoint, LimitDecision } from '../http/admission.ts'
import type { UsedUpWindow } from '../limits/used-up-windows.ts'
import {
  createWindowTable,
  type WindowPolicy,
  type Windows,
  type WindowTable,
} from '../limits/window-table.ts'
import type { Clock } from '../system/clock.ts'
import { type CountAnswer, createCountBatches } from './count.ts'
import { closesIn, createKnownWindows, type KnownWindow } from './known-windows.ts'
import type { SharedStore } from './shared-store.ts'

/** The windows that several sidecars share through a store. */
export interface SharedWindows extends Windows {
  /** The number of windows that this sidecar knows, including closed ones that are not reclaimed yet. */
  readonly size: number
  /**
   * The windows that this sidecar knows to be used up and that are still open, at most 1000 on the server and 1000 of its own. First
   * its own, then those on the server, each the latest first. A key that has both appears once.
   */
  usedUp(): readonly UsedUpWindow[]
  /** A policy that differs from the present one opens new windows, in all sidecars that have it. */
  applyPolicy(policy: WindowPolicy): void
}

export interface SharedWindowsOptions {
  readonly store: Pick<SharedStore, 'prefix' | 'run' | 'up'>
  readonly endpoint: Endpoint
  readonly clock: Clock
  readonly maxKeys: number
  /** The store did not answer, so a request was counted by this sidecar alone. No error: the store was known to be down. */
  readonly onFallback: (endpoint: Endpoint, error?: unknown) => void
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
export function createSharedWindows(policy: WindowPolicy, options: SharedWindowsOptions): SharedWindows {
  let present = windowsOf(policy, options)

  return {
    count: (key) => present.count(key),
    get size() {
      return present.size
    },
    usedUp: () => present.usedUp(),
    applyPolicy(next) {
      if (next.requests === policy.requests && next.window === policy.window) return
      policy = next
      present = windowsOf(next, options)
    },
  }
}

type WindowsOfPolicy = Omit<SharedWindows, 'applyPolicy'>

/** The windows of one policy. A request that waits for the server during a reload is decided by the policy at its arrival. */
function windowsOf(policy: WindowPolicy, options: SharedWindowsOptions): WindowsOfPolicy {
  const { store, endpoint, clock, maxKeys, onFallback, onAnswer } = options
  const prefix = `${store.prefix}w:${endpoint}:${policy.requests}:${policy.window}:`
  const known = createKnownWindows(policy, maxKeys)
  const ask = createCountBatches(policy, { store, clock })
  const askWhenFull = createCountBatches(policy, { store, clock }, `${prefix}overflow`)
  let local: WindowTable | undefined
  let localUntil = 0

  function countLocally(key: string, error?: unknown): LimitDecision {
    local ??= createWindowTable(policy, { clock, maxKeys })
    localUntil = clock.monotonic() + policy.window
    onFallback(endpoint, error)
    return local.count(key)
  }

  function decide(answer: CountAnswer): LimitDecision {
    if (local !== undefined && answer.answeredAt >= localUntil) local = undefined
    onAnswer(answer.askedAt)
    return {
      admitted: answer.before < policy.requests,
      limit: policy.requests,
      remaining: Math.max(0, policy.requests - answer.before - 1),
      closesIn: closesIn(answer.left, policy),
      shared: true,
      overflow: answer.overflowed,
    }
  }

  async function countIn(window: KnownWindow, key: string): Promise<LimitDecision> {
    try {
      const answer = await ask(prefix + key)
      known.learn(window, answer, key)
      return decide(answer)
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
      return decide(answer)
    } catch (error) {
      return countLocally(key, error)
    }
  }

  return {
    count(key) {
      const now = clock.monotonic()
      const found = known.find(key, now)
      const full = found === undefined && known.isFull(now)
      const window = full ? known.overflow : found
      if (window?.usedUp && now < window.openUntil) {
        window.refused += 1
        return refusal(window, policy, now, full)
      }
      if (!store.up) return countLocally(key)
      return full ? countWhenFull(key) : countIn(window ?? known.add(key), key)
    },
    get size() {
      return known.size + (local?.size ?? 0)
    },
    usedUp: () => merged([...(local?.usedUp() ?? []), ...known.usedUp(clock.monotonic())]),
  }
}

/** The decision for a window that is known to be used up. */
function refusal(
  { closesBy }: KnownWindow,
  { requests }: WindowPolicy,
  now: number,
  overflow: boolean,
): LimitDecision {
  return { admitted: false, limit: requests, remaining: 0, closesIn: closesBy - now, shared: true, overflow }
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
