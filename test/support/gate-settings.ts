import type { GateRules } from '../../src/gate/admit.ts'

/** The default settings of a gate, without public paths and with the same limit for both endpoints. */
export function gateRules(limit: GateRules['limits']['api'], over: Partial<GateRules> = {}): GateRules {
  return {
    limits: { api: limit, oauth: limit },
    ietfHeaders: false,
    findPublic: () => undefined,
    enforce: true,
    revocationPath: undefined,
    headerCaps: { maxHeaderSize: 16 * 1024, maxHeaderCount: 100 },
    ...over,
  }
}
