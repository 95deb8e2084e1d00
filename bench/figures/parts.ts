import { randomBytes } from 'node:crypto'
import { type Admit, createGate, createRequestIds } from '../../src/gate/admit.ts'
import { createClientAddress } from '../../src/gate/client-address.ts'
import type { RequestHead } from '../../src/http/exchange.ts'
import type { Fields } from '../../src/http/fields.ts'
import { createWindowTable } from '../../src/limits/window-table.ts'
import { createSessions } from '../../src/oauth/sessions.ts'
import { systemClock } from '../../src/system/clock.ts'
import { createMemoryJournal } from '../../src/tokens/token-journal.ts'
import { createTokenStore, type TokenStore } from '../../src/tokens/token-store.ts'
import { gateRules } from '../../test/support/gate-settings.ts'
import { headOf } from '../floor/bare-exchange.ts'

/** Parts of the sidecar that figures measure in a process of their own. */

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

/** The gate of the sidecar with real window tables and a real token store, and requests for it. */
export interface BenchGate {
  readonly admit: Admit
  /**
   * One request for each of `count` logins. Requests in turn with different tokens defeat caches of the last lookup.
   * `fieldsWith` makes the header fields, of a token or of the cookie of a browser.
   */
  heads(count: number, fieldsWith: (token: string, cookie: string) => Fields): RequestHead[]
}

const CLIENT = '192.0.2.7'

/** @param requests the limit of each client per minute */
export function openGate(requests: number): BenchGate {
  const limit = { requests, window: 60_000, per: 'client' } as const
  const table = () => createWindowTable(limit, { clock: systemClock, maxKeys: 100_000 })
  const tokens = openTokenStore(10_000)
  const sessions = createSessions(tokens, randomBytes)
  const rules = gateRules(limit, { browser: true })
  const limits = { ...rules.limits, browser: { ...limit, per: 'grant' } } as const
  const given = {
    version: '1.1',
    secure: true,
    method: 'GET',
    target: '/api/status?verbose=1',
    authority: undefined,
    peer: CLIENT,
    localPort: 8443,
  } as const
  return {
    admit: createGate({
      clock: systemClock,
      tables: { api: table(), oauth: table(), browser: table() },
      identify: tokens.identify,
      sessions,
      newRequestId: createRequestIds(randomBytes),
      settings: { gate: { ...rules, limits }, clientOf: createClientAddress([]) },
    }),
    heads: (count, fieldsWith) =>
      Array.from({ length: count }, () => {
        const issued = tokens.issue(CLIENT, 'password')
        const [cookie = ''] = sessions.begin(issued).split(';')
        return headOf(given, fieldsWith(issued.accessToken, cookie))
      }),
  }
}
