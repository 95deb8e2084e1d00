import type { Clock } from '../system/clock.ts'
import type { LiveRequests } from '../tokens/revocation.ts'
import type { TokenCopies } from './copies.ts'
import { pagesOf } from './grants.ts'
import { regularQuestion } from './regular-question.ts'
import { HOLD, runScript } from './scripts.ts'
import { listOf, type SharedStore } from './shared-store.ts'

interface Dependencies {
  readonly store: SharedStore
  readonly clock: Clock
  readonly live: LiveRequests
  readonly copies: Pick<TokenCopies, 'epoch' | 'leftOfLogin'>
  readonly onBug: (error: unknown) => void
}

/** How often the server is asked about the grants of open streams (ms). A sidecar without streams asks nothing. */
const ASK_EVERY = 2_000

/** For this time after a question (ms), the server evicts the grant only after all others. */
const HELD_FOR = 15_000

/**
 * Ends the streams and tunnels whose grants are over (C8). The copies of access tokens do not show that: a grant lives as long as its
 * refresh token, which another sidecar may renew. So the server is asked, and it evicts the grants in question after all others.
 */
export function watchStreams({ store, clock, live, copies, onBug }: Dependencies) {
  /** When grants end, by the last answer of the server (ms on the monotonic clock). */
  let ends: ReadonlyMap<string, number> = new Map()
  const askInTime = regularQuestion({ clock, every: ASK_EVERY, onBug })

  async function ask(grants: readonly string[]): Promise<void> {
    const said = new Map<string, number>()
    for (const page of pagesOf(grants)) {
      const asked = clock.monotonic()
      const [epoch, ...found] = await runScript(store, HOLD, HELD_FOR, ...page)
      // The server has lost its data. A sidecar will begin an epoch, which ends the streams.
      if (copies.epoch.isBehind(String(epoch))) return
      for (const [at, grant] of page.entries()) {
        const [left, age] = listOf(found[at]).map(Number)
        said.set(grant, asked + Math.min(left ?? 0, age === undefined ? Infinity : copies.leftOfLogin(age)))
      }
    }
    ends = said
  }

  function isOver(grant: string): boolean {
    const end = ends.get(grant)
    return end !== undefined && end <= clock.monotonic()
  }

  /** Ends the streams whose grants are over, and asks about the others if it is time. Call it about once a second. */
  return function sweep(): void {
    const now = clock.monotonic()
    live.endStreams(now, isOver)
    const grants = live.streaming(now)
    if (grants.size > 0) askInTime(() => ask([...grants]))
  }
}
