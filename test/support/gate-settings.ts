import type { GateSettings } from '../../src/gate/admit.ts'

/** What a gate of the tests is set to, with this limit for both endpoints: as by default, and no public paths. */
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
