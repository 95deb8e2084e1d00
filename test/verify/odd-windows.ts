import { nextTurn } from '../../src/system/clock.ts'
import type { Limit, Now, Windows } from './windows.ts'

/** Lets a request pass if fewer than the limit passed in the time of a window before it. */
export function slidingWindows({ requests, seconds }: Limit, clock: Now): Windows {
  const passed = new Map<string, number[]>()
  return {
    count(key) {
      const now = clock()
      const times = (passed.get(key) ?? []).filter((at) => at > now - seconds * 1000)
      const passes = times.length < requests
      if (passes) times.push(now)
      passed.set(key, times)
      return { passes, remaining: requests - times.length, closesAt: (times[0] ?? now) + seconds * 1000 }
    },
    giveBack: (key) => {
      passed.get(key)?.pop()
    },
  }
}

/** A bucket that starts full. Every quarter of a window refills a quarter of the limit. */
export function tokenBuckets({ requests, seconds }: Limit, clock: Now): Windows {
  const buckets = new Map<string, { level: number; filledAt: number }>()
  const step = (seconds * 1000) / 4
  return {
    count(key) {
      const now = clock()
      const bucket = buckets.get(key) ?? { level: requests, filledAt: now }
      buckets.set(key, bucket)
      const steps = Math.floor((now - bucket.filledAt) / step)
      bucket.level = Math.min(requests, bucket.level + steps * Math.ceil(requests / 4))
      bucket.filledAt = bucket.level === requests ? now : bucket.filledAt + steps * step
      const passes = bucket.level >= 1
      if (passes) bucket.level -= 1
      const full = bucket.filledAt + Math.ceil(((requests - bucket.level) / requests) * 4) * step
      return { passes, remaining: bucket.level, closesAt: passes ? full : bucket.filledAt + step }
    },
    giveBack: (key) => {
      const bucket = buckets.get(key)
      if (bucket !== undefined) bucket.level += 1
    },
  }
}

/** Reads the count of a fixed window, and writes it some turns later: requests in between are not seen. */
export function racingWindows({ requests, seconds }: Limit, clock: Now): Windows {
  const open = new Map<string, { counted: number; closesAt: number }>()
  return {
    async count(key) {
      const now = clock()
      const found = open.get(key)
      const window =
        found !== undefined && now < found.closesAt ? found : { counted: 0, closesAt: now + seconds * 1000 }
      const { counted } = window
      const passes = counted < requests
      for (let turn = 0; turn < 20; turn += 1) await nextTurn()
      if (passes) window.counted = counted + 1
      open.set(key, window)
      return { passes, remaining: passes ? requests - counted - 1 : 0, closesAt: window.closesAt }
    },
    giveBack: (key) => {
      const window = open.get(key)
      if (window !== undefined) window.counted -= 1
    },
  }
}
