/** How many requests a window admits, and how long it stays open (ms). */
export interface WindowPolicy {
  readonly requests: number
  readonly window: number
}

/** A fixed window of one key: opened by its first request, closed `policy.window` ms later (C14). */
export interface Window {
  closesAt: number
  count: number
}

/** What one request was told. */
export interface Verdict {
  readonly admitted: boolean
  readonly limit: number
  readonly remaining: number
  /** Milliseconds from the count to the close. */
  readonly closesIn: number
}

/** The windows of one endpoint type, by key: what the gate asks. Sidecars that share a limit ask a store, which answers later. */
export interface Windows {
  /** Counts a request of this key and says whether it passes. */
  count(key: string): Verdict | Promise<Verdict>
}

/** A window is open up to its closing instant; a request at that instant belongs to the next one. */
export function isOpen(window: Window, now: number): boolean {
  return now < window.closesAt
}

export function openWindow(policy: WindowPolicy, now: number): Window {
  return { closesAt: now + policy.window, count: 0 }
}

/**
 * Checks and counts in one step, so that no interleaving admits more than `policy.requests` per window.
 * A refused request is not counted: it neither prolongs the window nor lets the count run away.
 */
export function countRequest(window: Window, policy: WindowPolicy, now: number): Verdict {
  const admitted = window.count < policy.requests
  if (admitted) window.count += 1
  return {
    admitted,
    limit: policy.requests,
    remaining: Math.max(0, policy.requests - window.count),
    closesIn: window.closesAt - now,
  }
}
