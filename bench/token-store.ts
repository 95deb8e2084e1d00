import { randomBytes } from 'node:crypto'
import { systemClock } from '../src/system/clock.ts'
import { createMemoryJournal } from '../src/tokens/token-journal.ts'
import { createTokenStore, type TokenStore } from '../src/tokens/token-store.ts'

const HOUR = 3_600_000

/** The sidecar's own token store, in memory, with the lifetimes that it has by default. */
export function openTokenStore(capacity: number): TokenStore {
  return createTokenStore({
    policy: {
      capacity,
      accessLifetime: HOUR,
      refreshLifetime: 7 * 24 * HOUR,
      rotateRefresh: false,
      refreshGrace: 10_000,
    },
    clock: systemClock,
    random: randomBytes,
    journal: createMemoryJournal(),
    listener: { issued() {}, revoked() {}, evicted() {} },
  })
}
