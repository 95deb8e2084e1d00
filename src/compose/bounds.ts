import type { StoreBounds } from '../fleet/connection.ts'
import { DEVICE_BOUNDS, type DeviceBounds } from '../forward/service-settings.ts'
import { LISTEN_BOUNDS, type ListenBounds } from '../listen/connection-caps.ts'

/** Bounds that a test sets in place of constants, to reach them with few bytes. Bounds with a configuration key are not among them. */
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
