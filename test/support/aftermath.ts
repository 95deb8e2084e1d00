import { expect } from 'vitest'
import type { TestSidecar } from './sidecar.ts'

/** What has to be there again after whatever a client did (ms). */
const BACK_TO_NORMAL = 5000

/**
 * Holds a sidecar to what must be true after every attack: it lives, the next good request gets its 200, and within 5 s
 * no connection is left of the attack's, neither from clients nor at the device, where one may be kept for later.
 */
export async function expectUnharmed(sidecar: TestSidecar, token: string): Promise<void> {
  expect((await sidecar.request({ path: '/good', token })).status).toBe(200)
  await expect
    .poll(
      async () => ({
        clients: await sidecar.metric('postern_connections'),
        tunnels: await sidecar.metric('postern_tunnels'),
        inFlight: await sidecar.metric('postern_upstream_in_flight'),
        atDevice: sidecar.device.openConnections > 1 ? sidecar.device.openConnections : 'at most one',
      }),
      { timeout: BACK_TO_NORMAL },
    )
    .toEqual({ clients: 0, tunnels: 0, inFlight: 0, atDevice: 'at most one' })
}
