import { expect } from 'vitest'
import type { TestSidecar } from './sidecar.ts'

/**
 * Checks what must hold after every attack: the sidecar runs, the next good request gets 200, and
 * no connection of the attack stays, neither from clients nor at the device.
 * @param kept how many idle connections to the device may remain: as many as were in use at once
 */
export async function expectUnharmed(sidecar: TestSidecar, token: string, kept = 1): Promise<void> {
  expect((await sidecar.request({ path: '/good', token })).status).toBe(200)
  await expect
    .poll(async () => {
      const figure = await sidecar.figures()
      return {
        clients: figure('postern_connections'),
        tunnels: figure('postern_tunnels'),
        inFlight: figure('postern_upstream_in_flight'),
        atDevice: Math.max(kept, sidecar.device.openConnections),
      }
    })
    .toEqual({ clients: 0, tunnels: 0, inFlight: 0, atDevice: kept })
}
