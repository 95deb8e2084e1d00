import type { GateRules } from '../../src/gate/admit.ts'
import type { CredentialStores } from '../../src/gate/credential.ts'

/** What a gate has of sessions before the first login of a browser. */
export const NO_SESSIONS: CredentialStores['sessions'] = {
  has: () => false,
  identify: () => ({ kind: 'refused', cause: 'missing' }),
}

/** The default settings of a gate, without public paths and with the same limit for both endpoints. */
export function gateRules(limit: GateRules['limits']['api'], over: Partial<GateRules> = {}): GateRules {
  return {
    limits: { api: limit, oauth: limit, browser: limit },
    ietfHeaders: false,
    findPublic: () => undefined,
    scopes: undefined,
    enforce: true,
    revocationPath: undefined,
    browser: false,
    cors: undefined,
    headerCaps: { maxHeaderSize: 16 * 1024, maxHeaderCount: 100 },
    ...over,
  }
}
