import type { StoreBounds } from '../fleet/connection.ts'
import { DEVICE_BOUNDS, type DeviceBounds } from '../forward/settings.ts'
import { LISTEN_BOUNDS, type ListenBounds } from '../listen/connection-caps.ts'

/** Bounds in place of the constants: a test makes them small, to reach them. What a key sets is none of them. */
export interface SomeBounds {
  readonly listen?: Partial<ListenBounds> | undefined
  readonly device?: Partial<DeviceBounds> | undefined
  readonly store?: Partial<StoreBounds> | undefined
}

export function listenBounds({ listen }: SomeBounds): ListenBounds {
  return { ...LISTEN_BOUNDS, ...listen }
}

export function deviceBounds({ device }: SomeBounds): DeviceBounds {
  return { ...DEVICE_BOUNDS, ...device }
}
