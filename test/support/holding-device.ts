import type { ServerResponse } from 'node:http'
import { expect } from 'vitest'
import { type Device, startDevice } from './device.ts'
import type { TestSidecar } from './sidecar.ts'

/** A device that holds every request until the test answers it, and the held responses in order of arrival. */
export async function startHoldingDevice(): Promise<{
  readonly device: Device
  readonly held: readonly ServerResponse[]
}> {
  const held: ServerResponse[] = []
  const device = await startDevice((_request, response) => held.push(response))
  return { device, held }
}

/** Waits until so many requests are queued for a place at the device. */
export async function waitForQueued(sidecar: TestSidecar, count: number): Promise<void> {
  await expect.poll(() => sidecar.metric('postern_upstream_queued'), { interval: 5 }).toBe(count)
}
