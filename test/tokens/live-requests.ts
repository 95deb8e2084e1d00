import type { LiveRequests } from '../../src/tokens/revocation.ts'

/** Requests in flight of these grants, by a client of their own each. */
export function liveRequests(grants: readonly string[] = [], over: Partial<LiveRequests> = {}): LiveRequests {
  return {
    cut() {},
    endStreams() {},
    granted: () => grants.map((grant) => ({ grant, client: { address: '192.0.2.9' } })),
    streaming: () => new Set(grants),
    ...over,
  }
}
