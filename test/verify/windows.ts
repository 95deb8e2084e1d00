/** The time of day (Unix time in ms). */
export type Now = () => number

export interface Limit {
  readonly requests: number
  /** Length of a window (s). */
  readonly seconds: number
}

/** What a window says of one request. */
export interface Count {
  readonly passes: boolean
  /** Requests left in the window, after this one. */
  readonly remaining: number
  /** The end of the window (Unix time in ms). */
  readonly closesAt: number
}

/** The windows of one endpoint type, one for each key. */
export interface Windows {
  count(key: string): Count | Promise<Count>
  /** Takes back one request of the open window. */
  giveBack(key: string): void
}

/** A window that is open. */
export interface Window {
  counted: number
  closesAt: number
}

export interface WindowRules {
  /** True: windows begin at whole multiples of their length. False: with the first request. */
  readonly onTheClock?: boolean
  /** How long a window really stays open (s). */
  readonly lasts?: number
  /** How many requests really pass. */
  readonly admits?: number
  /** Called for each refused request. */
  readonly refused?: (window: Window) => void
}

/** Fixed windows: a request is checked and counted in one step. The rules are there for faults. */
export function fixedWindows(limit: Limit, now: Now, rules: WindowRules = {}): Windows {
  const { onTheClock = false, lasts = limit.seconds, admits = limit.requests, refused } = rules
  const length = limit.seconds * 1000
  const open = new Map<string, Window>()

  function windowAt(key: string): Window {
    const window = open.get(key)
    if (window !== undefined && now() < window.closesAt + (lasts - limit.seconds) * 1000) return window
    const opensAt = onTheClock ? now() - (now() % length) : now()
    const opened = { counted: 0, closesAt: opensAt + length }
    open.set(key, opened)
    return opened
  }

  return {
    count(key) {
      const window = windowAt(key)
      const passes = window.counted < admits
      if (passes) window.counted += 1
      else refused?.(window)
      const remaining = passes ? Math.max(0, limit.requests - window.counted) : 0
      return { passes, remaining, closesAt: window.closesAt }
    },
    giveBack(key) {
      const window = open.get(key)
      if (window !== undefined && window.counted > 0) window.counted -= 1
    },
  }
}

/** The fields of a count that every response carries (device API §8). The reset is rounded up. */
export function limitFields(limit: Limit, { remaining, closesAt }: Count): Readonly<Record<string, string>> {
  return {
    'X-RateLimit-Limit': String(limit.requests),
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': String(Math.ceil(closesAt / 1000)),
  }
}

/** Whole seconds until a window closes, at least 1. */
export function secondsUntil(closesAt: number, now: number): number {
  return Math.max(1, Math.ceil((closesAt - now) / 1000))
}
