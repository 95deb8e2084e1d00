import { randomBytes } from 'node:crypto'
import { systemClock } from '../../src/system/clock.ts'
import { createMemoryJournal } from '../../src/tokens/token-journal.ts'
import { createTokenStore, type TokenStore } from '../../src/tokens/token-store.ts'

const HOUR = 3_600_000

/** The token store of the sidecar, in memory, with the default lifetimes. */
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
