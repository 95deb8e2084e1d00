import { expect } from 'vitest'
import type { TestSidecar } from './sidecar.ts'

/** How long (ms) a connection to the device is kept that was still opening when its client left. */
const KEPT_UNUSED = 4_000

/**
 * Checks what must hold after every attack: the sidecar runs, the next good request gets 200, and
 * no connection of the attack stays, neither from clients nor at the device.
 * @param kept how many idle connections to the device may remain: as many as were in use at once
 */
export async function expectUnharmed(sidecar: TestSidecar, token: string, kept = 1): Promise<void> {
  expect((await sidecar.request({ path: '/good', token })).status).toBe(200)
  const { device, clock } = sidecar
  await expect
    .poll(async () => {
      const figure = await sidecar.figures()
      return {
        clients: figure('postern_connections'),
        tunnels: figure('postern_tunnels'),
        inFlight: figure('postern_upstream_in_flight'),
      }
    })
    .toEqual({ clients: 0, tunnels: 0, inFlight: 0 })
  if (device.openConnections > kept) await clock.advance(KEPT_UNUSED)
  await expect.poll(() => Math.max(kept, device.openConnections)).toBe(kept)
}
