import type { GateSettings } from '../../src/gate/admit.ts'

/** The default settings of a gate, without public paths and with the same limit for both endpoints. */
export function gateSettings(
  limit: GateSettings['limits']['api'],
  over: Partial<GateSettings> = {},
): GateSettings {
  return {
    limits: { api: limit, oauth: limit },
    ietfHeaders: false,
    isPublic: () => false,
    enforce: true,
    revocationPath: undefined,
    headerCaps: { maxHeaderSize: 16 * 1024, maxHeaderCount: 100 },
    ...over,
  }
}
