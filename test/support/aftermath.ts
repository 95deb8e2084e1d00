import { expect } from 'vitest'
import type { TestSidecar } from './sidecar.ts'

/** The time (ms) within which the sidecar must be back to normal after an attack. */
export const BACK_TO_NORMAL = 5000

/**
 * Checks what must hold after every attack: the sidecar runs, the next good request gets 200, and within 5 s
 * no connection of the attack is left, neither from clients nor at the device.
 * @param kept how many idle connections to the device may remain: as many as were in use at once
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
