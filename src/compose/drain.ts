import { type Clock, waitAtMost } from '../system/clock.ts'

/** How long a stop takes at most (ms). The service manager must wait for longer than both together before it kills the process. */
export const STOP_BOUNDS = {
  /** How long requests in flight may take to finish. */
  grace: 10_000,
  /** How long the refusals after that may take to reach their clients. Connections that upload linger within this time. */
  lastResponses: 1_500,
}

interface Drained {
  readonly clock: Clock
  readonly admin: { readonly endStreams: () => void }
  readonly listeners: { readonly endOpening: () => Promise<void> }
  readonly listener: { readonly drain: () => Promise<void> }
  /** `signOut` ends the sessions at the device. */
  readonly services: { readonly signOut: () => Promise<void> }
  /** Ends the requests in flight. Resolves with the number of refusals when these are sent. */
  readonly endRequests: () => Promise<number>
  /** Ends every wait at once. */
  readonly hurried: Promise<void>
}

/** Accepts nothing new, and lets requests in flight finish within `graceMs`. Then the rest are refused or aborted. */
export async function drain(
  graceMs: number,
  { clock, admin, listeners, listener, services, endRequests, hurried }: Drained,
): Promise<void> {
  const unlessHurried = (time: number, work: Promise<unknown>): Promise<void> =>
    waitAtMost(clock, time, Promise.race([work, hurried]))
  admin.endStreams()
  await listeners.endOpening()
  const drained = listener.drain()
  // Requests in flight need the session at the device. It ends with the last of them, or after 80 % of the grace.
  const signedOut = unlessHurried(graceMs * 0.8, drained).then(services.signOut)
  await unlessHurried(graceMs, Promise.all([drained, signedOut]))
  await unlessHurried(
    STOP_BOUNDS.lastResponses,
    endRequests().then((refused) => (refused === 0 ? undefined : drained)),
  )
}
