import type { VerifyOptions } from '../../../src/verify/options.ts'

type Limits = VerifyOptions['limits']

interface Window {
  used: number
  /** Unix time in ms. */
  closes: number
}

/** What a response says of the window that its request was counted in. */
export interface Counted {
  readonly passes: boolean
  /** The fields of any response. */
  readonly fields: Readonly<Record<string, string>>
}

const MOST_WINDOWS = 100_000

const SWEPT_EVERY = 60_000

/** Exact windows for each client and endpoint. */
export class Windows {
  readonly #windows = new Map<string, Window>()
  readonly #limits: Limits

  constructor(limits: Limits) {
    this.#limits = limits
    setInterval(() => this.#sweep(), SWEPT_EVERY).unref()
  }

  #sweep(): void {
    for (const [key, { closes }] of this.#windows) if (closes <= Date.now()) this.#windows.delete(key)
  }

  count(endpoint: keyof Limits, client: string): Counted {
    const { requests, window: seconds } = this.#limits[endpoint]
    const now = Date.now()
    const window = this.#windowOf(`${endpoint} ${client}`, `${endpoint} others`)
    if (window.closes <= now) Object.assign(window, { used: 0, closes: now + 1000 * seconds })
    const passes = window.used < requests
    if (passes) window.used += 1
    const fields = {
      'X-RateLimit-Limit': String(requests),
      'X-RateLimit-Remaining': String(requests - window.used),
      'X-RateLimit-Reset': String(Math.ceil(window.closes / 1000)),
    }
    const wait = String(Math.max(1, Math.ceil((window.closes - now) / 1000)))
    return { passes, fields: passes ? fields : { ...fields, 'Retry-After': wait } }
  }

  /** An open window is never given up for another one: clients past the most share one. */
  #windowOf(own: string, shared: string): Window {
    const known = this.#windows.get(own)
    if (known !== undefined) return known
    const key = this.#windows.size < MOST_WINDOWS ? own : shared
    const window = this.#windows.get(key) ?? { used: 0, closes: 0 }
    this.#windows.set(key, window)
    return window
  }
}
