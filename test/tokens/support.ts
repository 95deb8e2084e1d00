import type { Now } from '../../src/tokens/backend.ts'
import type { TokenPolicy } from '../../src/tokens/grant-rules.ts'
import { createGrantTable, type GrantTable } from '../../src/tokens/grant-table.ts'
import type { TokenJournal } from '../../src/tokens/journal.ts'
import type { LocalLookup } from '../../src/tokens/look-up.ts'
import { createMemoryBackend, type MemoryBackend } from '../../src/tokens/memory-backend.ts'
import type { LiveRequests } from '../../src/tokens/revocation.ts'
import type { TokenEvents } from '../../src/tokens/state-events.ts'
import { createTokenStore, type TokenStore } from '../../src/tokens/token-store.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { liveRequests } from './live-requests.ts'

export const SECOND = 1000
export const HOUR: number = 3600 * SECOND
export const DAY: number = 24 * HOUR
export const WEEK: number = 7 * DAY

export const POLICY: TokenPolicy = {
  capacity: 10_000,
  issued: 100,
  accessLifetime: HOUR,
  refreshLifetime: WEEK,
  rotateRefresh: false,
  refreshGrace: 10 * SECOND,
}

export interface TestStore {
  readonly store: Omit<Now<TokenStore>, 'identify'> &
    Pick<MemoryBackend, 'close' | 'issued' | 'removed'> & {
      identify(accessToken: string): LocalLookup
    }
  readonly clock: MovableClock
  /** The calls of the listener, in order. */
  readonly events: unknown[]
}

export function createTestStore(
  policy: Partial<TokenPolicy> = {},
  journal?: TokenJournal,
  clock: MovableClock = stillClock(),
  table: GrantTable = createGrantTable(policy.capacity ?? POLICY.capacity),
  live: Partial<LiveRequests> = {},
): TestStore {
  const events: unknown[] = []
  let because = ''
  const listener: TokenEvents = {
    issued: (kind) => events.push(['issued', kind]),
    revoked: (_grants, reason) => {
      because = reason
    },
    evicted: (kind, count) => events.push(['evicted', kind, count]),
  }
  const requests = liveRequests([], {
    cut: (grants) => events.push(['revoked', [...grants], because]),
    ...live,
  })
  const parts = { policy: { ...POLICY, ...policy }, listener, live: requests }
  const backend = createMemoryBackend({ ...parts, clock, journal, table })
  const { close, issued, removed } = backend
  const tokens = createTokenStore({ ...parts, backend })
  const identify = (accessToken: string): LocalLookup => tokens.identify(accessToken, '')
  return { store: { ...tokens, identify, close, issued, removed }, clock, events }
}

/** Returns the value; fails if there is none. */
export function present<T>(value: T | undefined | null): T {
  if (value === undefined || value === null) throw new Error('expected a value')
  return value
}
