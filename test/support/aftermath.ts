import { expect } from 'vitest'
import type { TestSidecar } from './sidecar.ts'

/** What has to be there again after whatever a client did (ms). */
export const BACK_TO_NORMAL = 5000

/**
 * Holds a sidecar to what must be true after every attack: it lives, the next good request gets its 200, and within 5 s
 * no connection is left of the attack's, neither from clients nor at the device.
 * @param kept how many connections to the device may be kept for later: as many as were in use at once
 */
export async function expectUnharmed(sidecar: TestSidecar, token: string, kept = 1): Promise<void> {
  expect((await sidecar.request({ path: '/good', token })).status).toBe(200)
  await expect
    .poll(
      async () => {
        const figure = await sidecar.figures()
        return {
          clients: figure('postern_connections'),
          tunnels: figure('postern_tunnels'),
          inFlight: figure('postern_upstream_in_flight'),
          atDevice: Math.max(kept, sidecar.device.openConnections),
        }
      },
      { timeout: BACK_TO_NORMAL },
    )
    .toEqual({ clients: 0, tunnels: 0, inFlight: 0, atDevice: kept })
}
